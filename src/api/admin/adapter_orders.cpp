#include "api/admin/adapter_orders.h"

#include <string>
#include <utility>

#include "api/body/adapter_fields.h"
#include "api/core/adapter_loader.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "api/core/node.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// Where no key is needed, clients are not to look around in the files of the machine, nor to take adapters from others.
Result<void> may_order(const Call& call) {
  if (call.frontend.keys.open()) {
    return Error{ErrorCode::forbidden,
                 "adapters are loaded and unloaded on a server with keys, by a key with admin=yes", ""};
  }
  if (call.frontend.keys.is_admin(call.caller)) return {};
  return Error{ErrorCode::forbidden, "adapters are loaded and unloaded for all tenants: it needs a key with admin=yes",
               ""};
}

net::Awaitable<Result<AdapterOrder>> order_of(Call& call, bool loads) {
  if (auto may = may_order(call); !may) co_return may.error();
  net::OffloadTerms terms = reading_terms(call);
  auto work = [body = std::move(call.body), loads] { return read_adapter_order(body, loads); };
  Result<AdapterOrder> order = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (order && order->model.empty()) order->model = call.exchange.request().query("model").value_or("");
  co_return order;
}

// As vLLM says it.
Handled tell_success(net::HttpExchange& exchange, std::string name, std::string_view what) {
  net::HttpResponse response(200, "text/plain; charset=utf-8",
                             "Success: LoRA adapter '" + name + "' " + std::string(what) + " successfully.");
  co_await exchange.respond(std::move(response));
  co_return Result<void>();
}

}  // namespace

Handled handle_load_adapter(const Node& node, Call call) {
  Result<AdapterOrder> order = co_await order_of(call, true);
  if (!order) co_return order.error();
  const Result<const ModelEntry*> entry = node.models.find(order->model);
  if (!entry) co_return entry.error();
  std::string name = order->name;
  ModelWait wait{[&exchange = call.exchange] { return exchange.client_gone(); }};
  Result<void> loaded = co_await node.adapters->load(**entry, std::move(*order), std::move(wait));
  if (!loaded) co_return loaded.error();
  Result<void> done = co_await tell_success(call.exchange, std::move(name), "added");
  co_return done;
}

Handled handle_unload_adapter(const Node& node, Call call) {
  Result<AdapterOrder> order = co_await order_of(call, false);
  if (!order) co_return order.error();
  const Result<const ModelEntry*> entry = node.models.find(order->model);
  if (!entry) co_return entry.error();
  if (auto unloaded = node.adapters->unload(**entry, order->name); !unloaded) co_return unloaded.error();
  Result<void> done = co_await tell_success(call.exchange, std::move(order->name), "removed");
  co_return done;
}

}  // namespace chasqui
