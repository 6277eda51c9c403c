#include "api/adapters.h"

#include "api/adapter_fields.h"
#include "api/answer.h"

namespace chasqui {

net::Awaitable<void> handle_adapters(Service& service, net::HttpExchange& exchange) {
  std::string body = adapters_body(service.adapters, service.keys.is_admin(exchange.request()));
  co_await respond_json(exchange, std::move(body));
}

net::Awaitable<void> handle_set_adapters(Service& service, net::HttpExchange& exchange) {
  if (!service.keys.is_admin(exchange.request())) {
    Error error{
        ErrorCode::forbidden,
        "the scales of adapters hold for all tenants: changing them needs a key with admin=yes; a request says its "
        "own with \"lora\"",
        ""};
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  auto work = [&service, body = exchange.take_body()] { return read_standing_scales(service.adapters, body); };
  Result<std::vector<float>> scales = co_await service.offload.run(std::move(work));
  if (!scales) {
    Error error = scales.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  service.adapters.set_standing_scales(*scales);
  std::string body = R"({"success":true})";
  co_await respond_json(exchange, std::move(body));
}

}  // namespace chasqui
