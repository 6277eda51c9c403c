#include "api/routes.h"

#include <algorithm>

#include "api/adapters.h"
#include "api/admin.h"
#include "api/anthropic.h"
#include "api/completions.h"
#include "api/debug_trace.h"
#include "api/embeddings.h"
#include "api/errors.h"
#include "api/infill.h"
#include "api/native.h"
#include "api/ollama.h"
#include "api/openapi.h"
#include "api/page.h"
#include "api/rerank.h"
#include "api/responses.h"
#include "api/sequence_list.h"
#include "api/sessions.h"
#include "api/slots.h"
#include "api/step_feed.h"
#include "api/stream_routes.h"
#include "api/text_tools.h"

namespace chasqui {
namespace {

using net::HttpMethod;

enum class Access { open, key };

using Handler = net::Awaitable<void> (*)(Service&, net::HttpExchange&);

net::Awaitable<void> chat(Service& service, net::HttpExchange& exchange) {
  return handle_generation(service, exchange, &prepare_chat);
}
net::Awaitable<void> completion(Service& service, net::HttpExchange& exchange) {
  return handle_generation(service, exchange, &prepare_completion);
}
net::Awaitable<void> native(Service& service, net::HttpExchange& exchange) {
  return handle_generation(service, exchange, &prepare_native);
}
net::Awaitable<void> infill(Service& service, net::HttpExchange& exchange) {
  return handle_generation(service, exchange, &prepare_infill);
}
net::Awaitable<void> generate(Service& service, net::HttpExchange& exchange) {
  return handle_generation(service, exchange, &prepare_generate);
}
net::Awaitable<void> tokenize(Service& service, net::HttpExchange& exchange) {
  return handle_text_tool(service, exchange, &tokenize_answer);
}
net::Awaitable<void> detokenize_route(Service& service, net::HttpExchange& exchange) {
  return handle_text_tool(service, exchange, &detokenize_answer);
}
net::Awaitable<void> apply_template(Service& service, net::HttpExchange& exchange) {
  return handle_text_tool(service, exchange, &apply_template_answer);
}

net::Awaitable<void> chat_input_tokens(Service& service, net::HttpExchange& exchange) {
  return handle_text_tool(service, exchange, &count_chat_input);
}
net::Awaitable<void> messages(Service& service, net::HttpExchange& exchange) {
  return handle_generation(service, exchange, &prepare_messages);
}
net::Awaitable<void> message_tokens(Service& service, net::HttpExchange& exchange) {
  return handle_text_tool(service, exchange, &count_message_tokens);
}

net::Awaitable<void> ollama_chat(Service& service, net::HttpExchange& exchange) {
  return handle_generation(service, exchange, &prepare_ollama_chat);
}
net::Awaitable<void> ollama_generate(Service& service, net::HttpExchange& exchange) {
  return handle_generation(service, exchange, &prepare_ollama_generate);
}
net::Awaitable<void> ollama_show_model(Service& service, net::HttpExchange& exchange) {
  return handle_text_tool(service, exchange, &ollama_show);
}

net::Awaitable<void> ollama_embed(Service& service, net::HttpExchange& exchange) {
  return handle_vectors(service, exchange, &prepare_ollama_embed);
}
net::Awaitable<void> ollama_embeddings(Service& service, net::HttpExchange& exchange) {
  return handle_vectors(service, exchange, &prepare_ollama_embeddings);
}
net::Awaitable<void> openai_embeddings(Service& service, net::HttpExchange& exchange) {
  return handle_vectors(service, exchange, &prepare_openai_embeddings);
}
net::Awaitable<void> rerank(Service& service, net::HttpExchange& exchange) {
  return handle_vectors(service, exchange, &prepare_rerank);
}
net::Awaitable<void> score(Service& service, net::HttpExchange& exchange) {
  return handle_vectors(service, exchange, &prepare_score);
}
net::Awaitable<void> native_embeddings(Service& service, net::HttpExchange& exchange) {
  return handle_vectors(service, exchange, &prepare_native_embeddings);
}

net::Awaitable<void> sessions_list(Service& service, net::HttpExchange& exchange) {
  return handle_session_command(service, exchange, &list_sessions);
}
net::Awaitable<void> session_show(Service& service, net::HttpExchange& exchange) {
  return handle_session_command(service, exchange, &show_session);
}
net::Awaitable<void> session_cancel(Service& service, net::HttpExchange& exchange) {
  return handle_session_command(service, exchange, &cancel_session);
}
net::Awaitable<void> session_fork(Service& service, net::HttpExchange& exchange) {
  return handle_session_command(service, exchange, &fork_session);
}
net::Awaitable<void> session_end(Service& service, net::HttpExchange& exchange) {
  return handle_session_command(service, exchange, &end_session);
}

net::Awaitable<void> response_show(Service& service, net::HttpExchange& exchange) {
  return handle_response_command(service, exchange, &show_response);
}
net::Awaitable<void> response_delete(Service& service, net::HttpExchange& exchange) {
  return handle_response_command(service, exchange, &delete_response);
}
net::Awaitable<void> response_cancel(Service& service, net::HttpExchange& exchange) {
  return handle_response_command(service, exchange, &cancel_response);
}
net::Awaitable<void> response_items(Service& service, net::HttpExchange& exchange) {
  return handle_response_command(service, exchange, &list_input_items);
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
    {HttpMethod::post, "/v1/chat/completions", Access::key, &chat},
    {HttpMethod::post, "/chat/completions", Access::key, &chat},
    {HttpMethod::post, "/v1/chat/completions/input_tokens", Access::key, &chat_input_tokens},
    {HttpMethod::post, "/chat/completions/input_tokens", Access::key, &chat_input_tokens},
    {HttpMethod::post, "/v1/chat/completions/control", Access::key, &handle_control},
    {HttpMethod::post, "/v1/messages", Access::key, &messages},
    {HttpMethod::post, "/v1/messages/count_tokens", Access::key, &message_tokens},
    {HttpMethod::post, "/v1/responses", Access::key, &handle_response},
    {HttpMethod::post, "/responses", Access::key, &handle_response},
    {HttpMethod::post, "/v1/responses/input_tokens", Access::key, &handle_response_tokens},
    {HttpMethod::post, "/responses/input_tokens", Access::key, &handle_response_tokens},
    {HttpMethod::get, "/v1/responses/{id}", Access::key, &response_show},
    {HttpMethod::del, "/v1/responses/{id}", Access::key, &response_delete},
    {HttpMethod::post, "/v1/responses/{id}/cancel", Access::key, &response_cancel},
    {HttpMethod::get, "/v1/responses/{id}/input_items", Access::key, &response_items},
    {HttpMethod::post, "/v1/completions", Access::key, &completion},
    {HttpMethod::post, "/completion", Access::key, &native},
    {HttpMethod::post, "/completions", Access::key, &native},
    {HttpMethod::post, "/infill", Access::key, &infill},
    {HttpMethod::post, "/generate", Access::key, &generate},
    {HttpMethod::post, "/v1/sessions", Access::key, &handle_create_session},
    {HttpMethod::get, "/v1/sessions", Access::key, &sessions_list},
    {HttpMethod::get, "/v1/sessions/{id}", Access::key, &session_show},
    {HttpMethod::del, "/v1/sessions/{id}", Access::key, &session_end},
    {HttpMethod::post, "/v1/sessions/{id}/append", Access::key, &handle_append},
    {HttpMethod::post, "/v1/sessions/{id}/generate", Access::key, &handle_session_generate},
    {HttpMethod::post, "/v1/sessions/{id}/cancel", Access::key, &session_cancel},
    {HttpMethod::post, "/v1/sessions/{id}/fork", Access::key, &session_fork},
    {HttpMethod::post, "/v1/embeddings", Access::key, &openai_embeddings},
    {HttpMethod::post, "/embeddings", Access::key, &native_embeddings},
    {HttpMethod::post, "/embedding", Access::key, &native_embeddings},
    {HttpMethod::post, "/v1/rerank", Access::key, &rerank},
    {HttpMethod::post, "/v1/reranking", Access::key, &rerank},
    {HttpMethod::post, "/rerank", Access::key, &rerank},
    {HttpMethod::post, "/reranking", Access::key, &rerank},
    {HttpMethod::post, "/v1/score", Access::key, &score},
    {HttpMethod::post, "/score", Access::key, &score},
    {HttpMethod::post, "/api/embed", Access::key, &ollama_embed},
    {HttpMethod::post, "/api/embeddings", Access::key, &ollama_embeddings},
    {HttpMethod::post, "/api/chat", Access::key, &ollama_chat},
    {HttpMethod::post, "/api/generate", Access::key, &ollama_generate},
    {HttpMethod::get, "/api/tags", Access::key, &handle_ollama_tags},
    {HttpMethod::get, "/api/ps", Access::key, &handle_ollama_running},
    {HttpMethod::post, "/api/show", Access::key, &ollama_show_model},
    {HttpMethod::get, "/api/version", Access::key, &handle_ollama_version},
    {HttpMethod::get, "/v1/stream", Access::key, &handle_stream},
    {HttpMethod::del, "/v1/stream", Access::key, &handle_stop_stream},
    {HttpMethod::post, "/v1/streams/lookup", Access::key, &handle_stream_lookup},
    {HttpMethod::post, "/tokenize", Access::key, &tokenize},
    {HttpMethod::post, "/detokenize", Access::key, &detokenize_route},
    {HttpMethod::post, "/apply-template", Access::key, &apply_template},
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

std::optional<net::HttpResponse> gate(const Service& service, const net::HttpRequest& request) {
  if (const auto refused = net::judge(service.config.web, request)) {
    return refuse(request, refused->status, refused->message);
  }
  if (is_open(request) || service.keys.find(request)) return std::nullopt;
  net::HttpResponse refusal = refuse(request, 401, "Invalid API Key");
  refusal.headers.add("WWW-Authenticate", "Bearer realm=\"chasqui\"");
  return refusal;
}

// Needs no key, since browsers send none with it, and says the same of every path.
net::Awaitable<void> handle_preflight(Service& service, net::HttpExchange& exchange) {
  net::HttpResponse response(204);
  response.headers = net::preflight_headers(service.config.web, exchange.request());
  response.headers.add("Allow", service.config.web.methods);
  co_await exchange.respond(std::move(response));
}

}  // namespace

std::vector<RouteName> route_names() {
  std::vector<RouteName> names;
  for (const Route& route : kRoutes) names.push_back({route.method, route.path, route.access == Access::open});
  return names;
}

net::HttpResponse http_error(int status, std::string_view message) {
  return net::HttpResponse(status, "application/json", error_body(status, message));
}

void add_routes(net::Router& router, Service& service) {
  for (const Route& route : kRoutes) {
    // Not a coroutine itself: it starts the named one.
    router.add(route.method, route.path,
               [&service, handler = route.handler](net::HttpExchange& exchange) { return handler(service, exchange); });
  }
  if (service.config.page) {
    for (const char* const path : kPagePaths) {
      router.add(HttpMethod::get, path,
                 [&service](net::HttpExchange& exchange) { return handle_page(service, exchange); });
    }
  }
  router.set_prefix(service.config.api_prefix);
  router.set_gate([&service](const net::HttpRequest& request) { return gate(service, request); });
  router.set_headers(
      [&web = service.config.web](const net::HttpRequest& request) { return net::cors_headers(web, request); });
  router.name_requests();
  router.set_refusals(&refuse);
  router.set_options_handler([&service](net::HttpExchange& exchange) { return handle_preflight(service, exchange); });
}

}  // namespace chasqui
