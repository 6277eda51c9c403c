#include "api/routes.h"

#include <algorithm>
#include <variant>

#include "api/adapters.h"
#include "api/admin.h"
#include "api/anthropic.h"
#include "api/completions.h"
#include "api/debug_trace.h"
#include "api/embeddings.h"
#include "api/errors.h"
#include "api/frontend.h"
#include "api/infill.h"
#include "api/key_ring.h"
#include "api/model_choice.h"
#include "api/native.h"
#include "api/node.h"
#include "api/ollama.h"
#include "api/openapi.h"
#include "api/page.h"
#include "api/reasoning_route.h"
#include "api/rerank.h"
#include "api/responses.h"
#include "api/sequence_list.h"
#include "api/served_model.h"
#include "api/sessions.h"
#include "api/slots.h"
#include "api/step_feed.h"
#include "api/stream_routes.h"
#include "api/text_tools.h"

namespace chasqui {
namespace {

using net::HttpMethod;

enum class Access { open, key };

using CallHandler = Handled (*)(Call);
using NodeHandler = Handled (*)(const Node&, Call);
using TableHandler = Handled (*)(const ModelTable&, Call);
// A route is served by a handler, or by what is particular about it: how a body becomes an answer, or a command. Those
// have one handler for all of their kind.
using Handler = std::variant<CallHandler, NodeHandler, TableHandler, PrepareAnswer, TextTool, PrepareVectors,
                             SessionCommand, ResponseCommand>;

// What starts the handler of a route; a named coroutine in each case.
struct Start {
  const Node& node;
  Call& call;

  Handled operator()(CallHandler handler) const { return handler(std::move(call)); }
  Handled operator()(NodeHandler handler) const { return handler(node, std::move(call)); }
  Handled operator()(TableHandler handler) const { return handler(node.models, std::move(call)); }
  Handled operator()(PrepareAnswer prepare) const { return handle_generation(std::move(call), prepare); }
  Handled operator()(TextTool tool) const { return handle_text_tool(std::move(call), tool); }
  Handled operator()(PrepareVectors prepare) const { return handle_vectors(std::move(call), prepare); }
  Handled operator()(SessionCommand command) const { return handle_session_command(std::move(call), command); }
  Handled operator()(ResponseCommand command) const { return handle_response_command(std::move(call), command); }
};

Handled handle_openapi(const Node& node, Call call) {
  std::string body = node.openapi;
  co_await respond_json(call.exchange, std::move(body));
  co_return Result<void>();
}

struct Route {
  HttpMethod method;
  const char* path;
  Access access;
  Handler handler;
};

const Route kRoutes[] = {
    {HttpMethod::get, "/health", Access::open, &handle_health},
    {HttpMethod::get, "/v1/health", Access::open, &handle_health},
    {HttpMethod::get, "/ready", Access::open, &handle_ready},
    {HttpMethod::get, "/openapi.json", Access::open, &handle_openapi},
    {HttpMethod::get, "/metrics", Access::key, &handle_metrics},
    {HttpMethod::get, "/debug/trace", Access::key, &handle_debug_trace},
    {HttpMethod::get, "/debug/sequences", Access::key, &handle_sequences},
    {HttpMethod::get, "/props", Access::key, &handle_props},
    {HttpMethod::get, "/debug/steps", Access::key, &handle_step_feed},
    {HttpMethod::get, "/lora-adapters", Access::key, &handle_adapters},
    {HttpMethod::post, "/lora-adapters", Access::key, &handle_set_adapters},
    {HttpMethod::get, "/slots", Access::key, &handle_slots},
    {HttpMethod::post, "/slots/{id}", Access::key, &handle_slot_action},
    {HttpMethod::post, "/props", Access::key, &handle_change_props},
    {HttpMethod::get, "/models", Access::key, &handle_models},
    {HttpMethod::get, "/v1/models", Access::key, &handle_models},
    {HttpMethod::get, "/v1/models/{id}", Access::key, &handle_model},
    {HttpMethod::get, "/version", Access::key, &handle_version},
    {HttpMethod::post, "/v1/chat/completions", Access::key, &prepare_chat},
    {HttpMethod::post, "/chat/completions", Access::key, &prepare_chat},
    {HttpMethod::post, "/v1/chat/completions/input_tokens", Access::key, &count_chat_input},
    {HttpMethod::post, "/chat/completions/input_tokens", Access::key, &count_chat_input},
    {HttpMethod::post, "/v1/chat/completions/control", Access::key, &handle_control},
    {HttpMethod::post, "/v1/messages", Access::key, &prepare_messages},
    {HttpMethod::post, "/v1/messages/count_tokens", Access::key, &count_message_tokens},
    {HttpMethod::post, "/v1/responses", Access::key, &handle_response},
    {HttpMethod::post, "/responses", Access::key, &handle_response},
    {HttpMethod::post, "/v1/responses/input_tokens", Access::key, &handle_response_tokens},
    {HttpMethod::post, "/responses/input_tokens", Access::key, &handle_response_tokens},
    {HttpMethod::get, "/v1/responses/{id}", Access::key, &show_response},
    {HttpMethod::del, "/v1/responses/{id}", Access::key, &delete_response},
    {HttpMethod::post, "/v1/responses/{id}/cancel", Access::key, &cancel_response},
    {HttpMethod::get, "/v1/responses/{id}/input_items", Access::key, &list_input_items},
    {HttpMethod::post, "/v1/completions", Access::key, &prepare_completion},
    {HttpMethod::post, "/completion", Access::key, &prepare_native},
    {HttpMethod::post, "/completions", Access::key, &prepare_native},
    {HttpMethod::post, "/infill", Access::key, &prepare_infill},
    {HttpMethod::post, "/generate", Access::key, &prepare_generate},
    {HttpMethod::post, "/v1/sessions", Access::key, &handle_create_session},
    {HttpMethod::get, "/v1/sessions", Access::key, &list_sessions},
    {HttpMethod::get, "/v1/sessions/{id}", Access::key, &show_session},
    {HttpMethod::del, "/v1/sessions/{id}", Access::key, &end_session},
    {HttpMethod::post, "/v1/sessions/{id}/append", Access::key, &handle_append},
    {HttpMethod::post, "/v1/sessions/{id}/generate", Access::key, &handle_session_generate},
    {HttpMethod::post, "/v1/sessions/{id}/cancel", Access::key, &cancel_session},
    {HttpMethod::post, "/v1/sessions/{id}/fork", Access::key, &fork_session},
    {HttpMethod::post, "/v1/embeddings", Access::key, &prepare_openai_embeddings},
    {HttpMethod::post, "/embeddings", Access::key, &prepare_native_embeddings},
    {HttpMethod::post, "/embedding", Access::key, &prepare_native_embeddings},
    {HttpMethod::post, "/v1/rerank", Access::key, &prepare_rerank},
    {HttpMethod::post, "/v1/reranking", Access::key, &prepare_rerank},
    {HttpMethod::post, "/rerank", Access::key, &prepare_rerank},
    {HttpMethod::post, "/reranking", Access::key, &prepare_rerank},
    {HttpMethod::post, "/v1/score", Access::key, &prepare_score},
    {HttpMethod::post, "/score", Access::key, &prepare_score},
    {HttpMethod::post, "/api/embed", Access::key, &prepare_ollama_embed},
    {HttpMethod::post, "/api/embeddings", Access::key, &prepare_ollama_embeddings},
    {HttpMethod::post, "/api/chat", Access::key, &prepare_ollama_chat},
    {HttpMethod::post, "/api/generate", Access::key, &prepare_ollama_generate},
    {HttpMethod::get, "/api/tags", Access::key, &handle_ollama_tags},
    {HttpMethod::get, "/api/ps", Access::key, &handle_ollama_running},
    {HttpMethod::post, "/api/show", Access::key, &ollama_show},
    {HttpMethod::get, "/api/version", Access::key, &handle_ollama_version},
    {HttpMethod::get, "/v1/stream", Access::key, &handle_stream},
    {HttpMethod::del, "/v1/stream", Access::key, &handle_stop_stream},
    {HttpMethod::post, "/v1/streams/lookup", Access::key, &handle_stream_lookup},
    {HttpMethod::post, "/tokenize", Access::key, &tokenize_answer},
    {HttpMethod::post, "/detokenize", Access::key, &detokenize_answer},
    {HttpMethod::post, "/apply-template", Access::key, &apply_template_answer},
};

bool is_page(const net::HttpRequest& request) {
  return std::ranges::find(kPagePaths, request.path) != kPagePaths.end();
}

bool is_open(const net::HttpRequest& request) {
  if (is_page(request)) return true;  // the gate is asked only about paths that have a route
  for (const Route& route : kRoutes) {
    if (route.access == Access::open && request.path == route.path) return true;
  }
  return false;
}

// In the shape of the path's dialect.
net::HttpResponse refuse(const net::HttpRequest& request, int status, std::string_view message) {
  if (is_anthropic(request.path)) {
    return net::HttpResponse(status, "application/json", anthropic_error_body(status, message));
  }
  if (is_ollama(request.path)) return net::HttpResponse(status, "application/json", ollama_error_body(message));
  return http_error(status, message);
}

std::optional<net::HttpResponse> gate(const Node& node, const net::HttpRequest& request) {
  if (const auto refused = net::judge(node.config.web, request)) {
    return refuse(request, refused->status, refused->message);
  }
  if (is_open(request)) return std::nullopt;
  const Result<Caller> caller = authenticate(node.frontend.keys, request);
  if (caller) return std::nullopt;
  net::HttpResponse refusal = refuse(request, 401, caller.error().message);
  refusal.headers.add("WWW-Authenticate", "Bearer realm=\"chasqui\"");
  return refusal;
}

Handled try_route(Node& node, const Route& route, net::HttpExchange& exchange) {
  Result<Caller> caller = Caller();
  if (route.access == Access::key) caller = authenticate(node.frontend.keys, exchange.request());
  if (!caller) co_return caller.error();
  Result<ServedModel*> served = node.models.find(exchange.request().query("model").value_or(""));
  if (!served) co_return served.error();
  std::string body = exchange.take_body();
  if (!body.empty()) served = co_await choose_model(node.models, node.frontend, *caller, body);
  if (!served) co_return served.error();
  Call call{exchange, node.frontend, **served, std::move(*caller), std::move(body)};
  Handled running = std::visit(Start{node, call}, route.handler);
  Result<void> done = co_await std::move(running);
  co_return done;
}

// All errors of handlers are told here.
net::Awaitable<void> serve_route(Node& node, const Route& route, net::HttpExchange& exchange) {
  Result<void> done = co_await try_route(node, route, exchange);
  if (done) co_return;
  Error error = done.error();
  co_await respond_error(exchange, std::move(error));
}

// Needs no key, since browsers send none with it, and says the same of every path.
net::Awaitable<void> handle_preflight(const net::WebPolicy& web, net::HttpExchange& exchange) {
  net::HttpResponse response(204);
  response.headers = net::preflight_headers(web, exchange.request());
  response.headers.add("Allow", web.methods);
  co_await exchange.respond(std::move(response));
}

}  // namespace

std::vector<RouteName> route_names() {
  std::vector<RouteName> names;
  for (const Route& route : kRoutes) names.push_back({route.method, route.path, route.access == Access::open});
  return names;
}

void add_routes(net::Router& router, Node& node) {
  node.openapi = openapi_document(route_names(), node.config.api_prefix);
  for (const Route& route : kRoutes) {
    // Not a coroutine itself: it starts the named one.
    router.add(route.method, route.path,
               [&node, &route](net::HttpExchange& exchange) { return serve_route(node, route, exchange); });
  }
  if (node.config.page) {
    for (const char* const path : kPagePaths) router.add(HttpMethod::get, path, &handle_page);
  }
  router.set_prefix(node.config.api_prefix);
  router.set_gate([&node](const net::HttpRequest& request) { return gate(node, request); });
  const net::WebPolicy& web = node.config.web;
  router.set_headers([&web](const net::HttpRequest& request) { return net::cors_headers(web, request); });
  router.name_requests();
  router.set_refusals(&refuse);
  router.set_options_handler([&web](net::HttpExchange& exchange) { return handle_preflight(web, exchange); });
}

}  // namespace chasqui
