#include "api/admin/model_orders.h"

#include <string>
#include <utility>

#include "api/body/fields.h"
#include "api/core/answer.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/key_ring.h"
#include "api/core/model_table.h"
#include "net/offload.h"

namespace chasqui {
namespace {

struct Order {
  std::string model{};
  std::string path{};
};

// Offload pool.
Result<Order> read_order(const std::string& body) {
  const auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  Order order;
  order.model = fields.string("model").value_or("");
  if (!may_name_model(order.model)) fields.refuse(no_model_of_long_name());
  const auto path = fields.string("path");
  if (path && path->empty()) fields.refuse("path", "the path of a GGUF file");
  order.path = path.value_or("");
  if (!fields.ok()) return fields.error();
  return order;
}

// Where no key is needed, clients are not to look around in the files of the machine.
Result<void> may_name_file(const KeyRing& keys, const Order& order) {
  if (order.path.empty() || !keys.open()) return {};
  return Error{ErrorCode::forbidden, "path needs a server with keys, and a key with admin=yes", "path"};
}

// The model that it names, and the file.
net::Awaitable<Result<std::pair<const ModelEntry*, std::string>>> order_of(const ModelTable& models, Call& call) {
  if (!call.frontend.keys.is_admin(call.caller)) {
    co_return Error{ErrorCode::forbidden,
                    "models are loaded and unloaded for all tenants: it needs a key with admin=yes", ""};
  }
  if (models.loader() == nullptr) {
    co_return Error{ErrorCode::not_supported,
                    "all models stay loaded; those of --models-dir and --models-preset can be unloaded", ""};
  }
  net::OffloadTerms terms = reading_terms(call);
  auto work = [body = std::move(call.body)] { return body.empty() ? Result<Order>(Order()) : read_order(body); };
  Result<Order> order = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (!order) co_return order.error();
  if (auto may = may_name_file(call.frontend.keys, *order); !may) co_return may.error();
  if (order->model.empty()) order->model = call.exchange.request().query("model").value_or("");
  const Result<const ModelEntry*> entry = models.find(order->model);
  if (!entry) co_return entry.error();
  co_return std::pair(*entry, std::move(order->path));
}

Handled tell_success(net::HttpExchange& exchange) {
  std::string body = R"({"success":true})";
  co_await respond_json(exchange, std::move(body));
  co_return Result<void>();
}

}  // namespace

Handled handle_load_model(const ModelTable& models, Call call) {
  auto order = co_await order_of(models, call);
  if (!order) co_return order.error();
  Result<void> told = co_await models.loader()->load(*order->first, std::move(order->second));
  if (!told) co_return told.error();
  Result<void> done = co_await tell_success(call.exchange);
  co_return done;
}

Handled handle_unload_model(const ModelTable& models, Call call) {
  auto order = co_await order_of(models, call);
  if (!order) co_return order.error();
  if (!order->second.empty()) co_return invalid_field("path", "path has no meaning here: name the model");
  if (auto told = models.loader()->unload(*order->first); !told) co_return told.error();
  Result<void> done = co_await tell_success(call.exchange);
  co_return done;
}

}  // namespace chasqui
