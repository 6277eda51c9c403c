#include "api/reasoning_control.h"

#include <algorithm>

#include "api/answer.h"
#include "api/fields.h"
#include "api/service.h"

namespace chasqui {
namespace {

// Offload pool. The id of the answer.
Result<std::string> read_control(const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const auto id = fields.string("id");
  if (!id || id->empty()) fields.refuse("id", "the id of an answer, a string");
  if (fields.string("action") != "reasoning_end") fields.refuse("action", "reasoning_end");
  if (!fields.ok()) return fields.error();
  return std::string(*id);
}

}  // namespace

void ReasoningSwitches::add(const ReasoningSwitchPtr& one) {
  if (by_id_.size() >= clean_at_) {
    std::erase_if(by_id_, [](const auto& entry) { return entry.second.expired(); });
    clean_at_ = std::max<std::size_t>(64, 2 * by_id_.size());
  }
  by_id_[one->id] = one;
}

ReasoningSwitchPtr ReasoningSwitches::find(std::uint32_t tenant, const std::string& id) const {
  const auto found = by_id_.find(id);
  ReasoningSwitchPtr one = found != by_id_.end() ? found->second.lock() : nullptr;
  return one != nullptr && one->tenant == tenant ? one : nullptr;
}

net::Awaitable<void> handle_control(Service& service, net::HttpExchange& exchange) {
  const std::optional<Caller> caller = service.keys.find(exchange.request());
  if (!caller) {
    Error error{ErrorCode::unauthorized, "Invalid API Key", ""};
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  auto work = [body = exchange.take_body()] { return read_control(body); };
  net::OffloadTerms terms;
  terms.owner = caller->tenant.id;
  const Result<std::string> id = co_await service.offload.run(std::move(work), std::move(terms));
  if (exchange.client_gone()) co_return;
  if (!id) {
    Error error = id.error();
    co_await respond_error(exchange, std::move(error));
    co_return;
  }
  const ReasoningSwitchPtr one = service.switches.find(caller->tenant.id, *id);
  if (one != nullptr) one->end.raise();
  std::string body = one != nullptr
                         ? R"({"success":true})"
                         : R"({"success":false,"message":"no answer of this id is running whose request said )"
                           R"(reasoning_control"})";
  co_await respond_json(exchange, std::move(body));
}

}  // namespace chasqui
