#include "api/routes/routes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <variant>

#include "api/admin/load_report.h"
#include "api/admin/page.h"
#include "api/body/model_choice.h"
#include "api/core/answer.h"
#include "api/core/errors.h"
#include "api/core/frontend.h"
#include "api/core/idempotent_answer.h"
#include "api/core/key_ring.h"
#include "api/core/node.h"
#include "api/core/served_model.h"
#include "api/llama_server/rerank.h"
#include "api/openai/openai_dialect.h"
#include "api/openai/responses.h"
#include "api/openai/transcriptions.h"
#include "api/routes/loading_stream.h"
#include "api/routes/openapi.h"
#include "api/routes/route_table.h"
#include "api/session/sessions.h"
#include "net/exchange.h"

namespace chasqui {
namespace {

// What starts the handler of a route; a named coroutine in each case.
struct Start {
  const Node& node;
  Call& call;

  Handled operator()(CallHandler handler) const { return handler(std::move(call)); }
  Handled operator()(NodeHandler handler) const { return handler(node, std::move(call)); }
  Handled operator()(TableHandler handler) const { return handler(node.models, std::move(call)); }
  Handled operator()(PrepareAnswer prepare) const { return handle_generation(std::move(call), prepare); }
  Handled operator()(TextTool tool) const { return handle_text_tool(std::move(call), tool); }
  Handled operator()(PrepareVectors prepare) const {
    const bool ranks = prepare == &prepare_rerank || prepare == &prepare_score;
    return handle_vectors(std::move(call), prepare, ranks ? RequestKind::ranking : RequestKind::embedding);
  }
  Handled operator()(SessionCommand command) const { return handle_session_command(std::move(call), command); }
  Handled operator()(ResponseCommand command) const { return handle_response_command(std::move(call), command); }
  Handled operator()(BatchCommand command) const { return handle_batch_command(std::move(call), command); }
};

bool is_page(const net::HttpRequest& request) {
  return std::ranges::find(kPagePaths, request.path) != kPagePaths.end();
}

bool is_open(const net::HttpRequest& request) {
  if (is_page(request)) return true;  // the gate is asked only about paths that have a route
  for (const Route& route : all_routes()) {
    if (route.access == Access::open && request.path == route.path) return true;
  }
  return false;
}

// In the shape of the path's dialect.
net::HttpResponse refuse(const net::HttpRequest& request, int status, std::string_view message) {
  return net::HttpResponse(status, "application/json", dialect_of(request.path).fault_body(status, message));
}

std::optional<net::HttpResponse> gate(const Node& node, const net::HttpRequest& request) {
  if (const auto refused = net::judge(node.config.web, request)) {
    node.frontend.loop.metrics().count_page_refused(refused->status);
    return refuse(request, refused->status, refused->message);
  }
  // What needs no key takes no body either: clients without a key would fill the memory that there is for bodies.
  if (is_open(request) && !request.announces_body()) return std::nullopt;
  const Result<Caller> caller = authenticate(node.frontend.keys, request);
  if (caller) return std::nullopt;
  net::HttpResponse refusal = refuse(request, 401, caller.error().message);
  refusal.headers.add("WWW-Authenticate", "Bearer realm=\"chasqui\"");
  return refusal;
}

// Of the admin listener. A path has one kind of access there, whatever the method.
std::optional<net::HttpResponse> admin_gate(const Node& node, const net::WebPolicy& web,
                                            const net::HttpRequest& request) {
  if (const auto refused = net::judge(web, request)) {
    node.frontend.loop.metrics().count_page_refused(refused->status);
    return refuse(request, refused->status, refused->message);
  }
  const auto route = std::ranges::find(admin_routes(), std::string_view(request.path), &Route::path);
  const bool open = route != admin_routes().end() && route->access == Access::open;
  if (open || node.frontend.keys.may_operate(request)) return std::nullopt;
  return refuse(request, 403, "Only for clients on this machine, or with a key that has admin=yes.");
}

constexpr std::string_view kIdempotencyKey = "Idempotency-Key";

// A client that goes on with a stream has its own way to ask again.
bool once_only(const Route& route, const net::HttpRequest& request) {
  return route.method == net::HttpMethod::post && request.header(kIdempotencyKey) && !request.header("Last-Event-ID");
}

// A session or a stored response belongs to a model whatever the request names. Null: the path has no such id, or there
// is nothing under it.
ServedModel* owner_of(const ModelTable& models, const Route& route, const Caller& caller,
                      const net::HttpExchange& exchange) {
  if (!models.has_choice()) return nullptr;
  if (route.path.starts_with("/v1/sessions/{id}")) {
    return model_of_session(models, caller.tenant.id, {exchange.param("id")});
  }
  if (route.path.starts_with("/v1/responses/{id}")) {
    return model_of_response(models, caller.tenant.id, exchange.param("id"));
  }
  return nullptr;
}

bool goes_on_with_responses(const Route& route) {
  return route.path.starts_with("/v1/responses") || route.path.starts_with("/responses");
}

// The order: whose session or response it is, the body's `model`, that of the query, the first one.
net::Awaitable<Result<ModelChoice>> choice_of(Node& node, const Route& route, Caller caller,
                                              net::HttpExchange& exchange, std::string& body) {
  // What is uploaded is no request, and names no model.
  if (std::holds_alternative<BatchCommand>(route.handler)) co_return ModelChoice{&node.models.entries().front()};
  if (const ServedModel* const owner = owner_of(node.models, route, caller, exchange)) {
    co_return ModelChoice{&node.models.entry_of(*owner)};
  }
  if (node.models.has_choice() && route.path.starts_with("/v1/sessions/{id}")) {
    SessionId id{exchange.param("id")};
    const Result<ServedModel*> owner = co_await find_shared_session(node.models, caller.tenant, std::move(id));
    if (!owner) co_return owner.error();
    if (*owner != nullptr) co_return ModelChoice{&node.models.entry_of(**owner)};
  }
  const Result<const ModelEntry*> entry = node.models.find(exchange.request().query("model").value_or(""));
  if (!entry) co_return entry.error();
  const ModelEntry& otherwise = **entry;
  if (body.empty()) co_return ModelChoice{&otherwise};
  const std::uint32_t tenant = caller.tenant.id;
  std::function<bool()> gone = [&exchange] { return exchange.client_gone(); };
  Result<ModelChoice> choice =
      co_await choose_model(node.models, node.frontend, std::move(caller), body, otherwise, std::move(gone));
  if (choice && !choice->previous.empty() && goes_on_with_responses(route)) {
    const ServedModel* const owner = model_of_response(node.models, tenant, choice->previous);
    if (owner != nullptr) choice->entry = &node.models.entry_of(*owner);
  }
  co_return choice;
}

// What is about the whole server: no model is loaded for it.
bool is_about_all(const Route& route) {
  if (route.path == "/props") return false;
  if (std::holds_alternative<BatchCommand>(route.handler)) return true;
  return std::holds_alternative<NodeHandler>(route.handler) || std::holds_alternative<TableHandler>(route.handler);
}

// What needs more of a model than its vocabulary, limits and counters, which stay when it is unloaded.
bool computes(const Route& route) {
  return route.text.generates || std::holds_alternative<PrepareAnswer>(route.handler) ||
         std::holds_alternative<PrepareVectors>(route.handler);
}

net::Awaitable<bool> tell_loading(const Node& node, const ModelEntry& entry, LoadingStream& stream) {
  const ModelStatus status = node.models.status(entry);
  std::string text = status.state == ModelState::loading
                         ? "loading " + entry.name + ": " + std::to_string(std::lround(100 * status.progress)) + " %"
                         : "waiting until there is room for " + entry.name;
  const bool open = co_await stream.comment(std::move(text));
  co_return open;
}

// `loading`: what tells the client of a stream that it waits; null where the answer is none.
net::Awaitable<Result<ServedModel*>> model_of(Node& node, const Route& route, Caller caller,
                                              net::HttpExchange& exchange, LoadingStream* loading, std::string& body) {
  if (route.access == Access::open) co_return &node.models.first();  // a request without a key loads no model
  const Result<ModelChoice> choice = co_await choice_of(node, route, std::move(caller), exchange, body);
  if (!choice) co_return choice.error();
  const ModelEntry& entry = *choice->entry;
  if (entry.served != nullptr && !computes(route)) co_return entry.served;
  if (is_about_all(route)) co_return &node.models.first();
  ModelWait wait{[&exchange] { return exchange.client_gone(); }};
  if (loading != nullptr && choice->stream) {
    wait.tell = [&node, &entry, loading] { return tell_loading(node, entry, *loading); };
    wait.tell_every = node.frontend.config.ping_every;
  }
  Result<ServedModel*> served = co_await node.models.ready(entry, std::move(wait));
  co_return served;
}

Result<Caller> client_of(const KeyRing& keys, const net::HttpRequest& request) {
  Result<Caller> caller = authenticate(keys, request);
  if (!caller || request.method != net::HttpMethod::post) return caller;
  const auto gateway = read_gateway_headers(request);
  if (!gateway) return gateway.error();
  caller->gateway = *gateway;
  return caller;
}

Result<Caller> caller_of(const Node& node, const Route& route, const net::HttpRequest& request) {
  Caller caller;
  switch (route.access) {
    case Access::open: return caller;
    case Access::key: return client_of(node.frontend.keys, request);
    case Access::operators: break;
  }
  caller.admin = caller.at_admin_door = true;
  return caller;
}

Handled enter_route(Node& node, const Route& route, Caller caller, net::HttpExchange& exchange,
                    LoadingStream* loading) {
  exchange.set_owner({caller.tenant.id, node.frontend.keys.tenants() <= 1});
  std::string body = exchange.take_body();
  if (route.text.generates && !route.text.accepts.empty()) {
    Result<void> form = co_await read_form_as_json(node.frontend, caller, exchange, body);
    if (!form) co_return form.error();
  }
  const Result<ServedModel*> served = co_await model_of(node, route, caller, exchange, loading, body);
  if (!served) co_return served.error();
  // What is about all models waits for one of them to go, perhaps.
  std::optional<ModelUse> use;
  if (!is_about_all(route)) use.emplace(**served);
  Call call{exchange, node.frontend, **served, std::move(caller), std::move(body)};
  const auto start = [&node, &route](Call taken) { return std::visit(Start{node, taken}, route.handler); };
  Handled running = once_only(route, exchange.request())
                        ? answer_once(std::move(call), std::string(*exchange.request().header(kIdempotencyKey)),
                                      *route.dialect, start)
                        : start(std::move(call));
  Result<void> done = co_await std::move(running);
  co_return done;
}

Handled try_route(Node& node, const Route& route, net::HttpExchange& exchange, LoadingStream* loading) {
  Result<Caller> caller = caller_of(node, route, exchange.request());
  if (!caller) co_return caller.error();
  Handled entering = enter_route(node, route, std::move(*caller), exchange, loading);
  Result<void> done = co_await std::move(entering);
  co_return done;
}

// All errors that handlers return are told here, but those of a batch's lines, which answer_for() tells.
net::Awaitable<void> answer_route(Node& node, const Route& route, net::HttpExchange& exchange, LoadingStream* loading) {
  Result<void> done = co_await try_route(node, route, exchange, loading);
  if (done) co_return;
  Error error = done.error();
  co_await respond_error(*route.dialect, exchange, std::move(error));
}

net::Awaitable<void> serve_route(Node& node, const Route& route, net::HttpExchange& exchange) {
  if (!node.models.may_wait() || !computes(route) || !route.dialect->sends_events) {
    co_await answer_route(node, route, exchange, nullptr);
    co_return;
  }
  LoadingStream stream(exchange, *route.dialect);
  co_await answer_route(node, route, stream, &stream);
}

// Needs no key, since browsers send none with it, and says the same of every path.
net::Awaitable<void> handle_preflight(const net::WebPolicy& web, net::HttpExchange& exchange) {
  net::HttpResponse response(204);
  response.headers = net::preflight_headers(web, exchange.request());
  response.headers.add("Allow", web.methods);
  co_await exchange.respond(std::move(response));
}

}  // namespace

net::HttpResponse pathless_fault(int status, std::string_view message) {
  return net::HttpResponse(status, "application/json", kOpenAi.fault_body(status, message));
}

net::Awaitable<void> answer_for(Node& node, std::string path, Caller caller, net::HttpExchange& exchange) {
  const auto route = std::ranges::find_if(
      all_routes(), [&](const Route& one) { return one.method == net::HttpMethod::post && one.path == path; });
  CHECK(route != all_routes().end(), "a line of a batch for a path without a route");
  Handled entering = enter_route(node, *route, std::move(caller), exchange, nullptr);
  Result<void> done = co_await std::move(entering);
  if (done) co_return;
  Error error = done.error();
  co_await respond_error(*route->dialect, exchange, std::move(error));
}

void add_routes(net::Router& router, Node& node) {
  node.openapi = openapi_document(all_routes(), node.config.api_prefix);
  for (const Route& route : all_routes()) {
    // Not a coroutine itself: it starts the named one.
    router.add(route.method, route.path,
               [&node, &route](net::HttpExchange& exchange) { return serve_route(node, route, exchange); });
  }
  if (node.config.page) {
    const std::string_view policy = node.config.page_policy;
    const auto serve_page = [policy](net::HttpExchange& exchange) { return handle_page(exchange, policy); };
    for (const char* const path : kPagePaths) router.add(net::HttpMethod::get, path, serve_page);
  }
  router.set_prefix(node.config.api_prefix);
  router.set_gate([&node](const net::HttpRequest& request) { return gate(node, request); });
  const net::WebPolicy& web = node.config.web;
  router.set_headers([&web](const net::HttpRequest& request) { return net::cors_headers(web, request); });
  router.set_answer_headers([&node](const net::HttpRequest& request, net::HttpHeaders& out) {
    if (asks_for_load(request) && authenticate(node.frontend.keys, request)) add_load_report(node, request, out);
  });
  router.name_requests();
  router.set_refusals(&refuse);
  router.set_options_handler([&web](net::HttpExchange& exchange) { return handle_preflight(web, exchange); });
}

void add_admin_routes(net::Router& router, Node& node, const net::WebPolicy& web) {
  for (const Route& route : admin_routes()) {
    router.add(route.method, route.path,
               [&node, &route](net::HttpExchange& exchange) { return serve_route(node, route, exchange); });
  }
  router.set_gate([&node, &web](const net::HttpRequest& request) { return admin_gate(node, web, request); });
  router.name_requests();
  router.set_refusals(&refuse);
}

}  // namespace chasqui
