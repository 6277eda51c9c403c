#include "api/llama_server/adapters.h"

#include "api/body/adapter_fields.h"
#include "api/core/answer.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "net/offload.h"

namespace chasqui {

Handled handle_adapters(Call call) {
  std::string body = adapters_body(*call.served.adapters.list(), call.frontend.keys.is_admin(call.caller));
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_set_adapters(Call call) {
  if (!call.frontend.keys.is_admin(call.caller)) {
    co_return Error{
        ErrorCode::forbidden,
        "the scales of adapters hold for all tenants: changing them needs a key with admin=yes; a request says its "
        "own with \"lora\"",
        ""};
  }
  net::OffloadTerms terms = reading_terms(call.caller, call.body);
  const AdapterListPtr list = call.served.adapters.list();
  auto work = [list, body = std::move(call.body)] { return read_standing_scales(*list, body); };
  Result<std::vector<float>> scales = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (!scales) co_return scales.error();
  call.served.adapters.set_standing_scales(*list, *scales);
  std::string body = R"({"success":true})";
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

}  // namespace chasqui
