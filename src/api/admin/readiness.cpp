#include "api/admin/readiness.h"

#include <string>

#include "api/admin/admin.h"
#include "api/core/answer.h"
#include "api/core/drain_control.h"
#include "api/core/node.h"
#include "base/json_writer.h"

namespace chasqui {
namespace {

Service service_of(const Node& node) { return node.drain != nullptr ? node.drain->service() : Service::open; }

Result<void> readiness(const Node& node) {
  switch (service_of(node)) {
    case Service::leaving: return Error{ErrorCode::unavailable, "the server is shutting down", ""};
    case Service::drained: return Error{ErrorCode::unavailable, "an operator has drained the server", ""};
    case Service::open: break;
  }
  const Result<std::string> healthy = health_answer(node);
  if (!healthy) return healthy.error();
  return {};
}

std::string drain_body(const DrainControl& drain) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("state", name(drain.service()));
  json.field("requests", drain.in_flight());
  json.end_object();
  return out;
}

Error no_control() { return {ErrorCode::unavailable, "the server is starting", ""}; }

}  // namespace

Handled handle_ready(const Node& node, Call call) {
  const Result<void> ready = readiness(node);
  if (!ready) co_return ready.error();
  std::string body = R"({"status":"ready"})";
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_show_drain(const Node& node, Call call) {
  if (node.drain == nullptr) co_return no_control();
  std::string body = drain_body(*node.drain);
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

Handled handle_drain(const Node& node, Call call) {
  if (node.drain == nullptr) co_return no_control();
  node.drain->drain();
  Result<void> shown = co_await handle_show_drain(node, std::move(call));
  co_return shown;
}

Handled handle_reopen(const Node& node, Call call) {
  if (node.drain == nullptr) co_return no_control();
  if (auto open = node.drain->reopen(); !open) co_return open.error();
  Result<void> shown = co_await handle_show_drain(node, std::move(call));
  co_return shown;
}

std::string_view agent_line(const Node& node) {
  if (service_of(node) != Service::open) return "drain\n";
  return health_answer(node) ? "up ready\n" : "maint\n";
}

}  // namespace chasqui
