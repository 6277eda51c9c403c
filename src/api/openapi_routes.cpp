#include "api/openapi_routes.h"

namespace chasqui {
namespace {

constexpr net::HttpMethod kGet = net::HttpMethod::get;
constexpr net::HttpMethod kPost = net::HttpMethod::post;
constexpr net::HttpMethod kDelete = net::HttpMethod::del;

constexpr RouteText kTexts[] = {
    {kGet, "/health", "Whether the workers move"},
    {kGet, "/v1/health", "Whether the workers move"},
    {kGet, "/ready", "Whether new requests are taken"},
    {kGet, "/openapi.json", "This document"},
    {.method = kGet, .path = "/metrics", .summary = "Counters, for Prometheus", .answer = "text/plain"},
    {kGet, "/props", "The model, its template, defaults and all limits"},
    {kGet, "/models", "The model"},
    {kGet, "/v1/models", "The model"},
    {kPost, "/v1/chat/completions", "Answer a chat, as OpenAI does", true, "messages"},
    {kPost, "/chat/completions", "Answer a chat, as OpenAI does", true, "messages"},
    {kPost, "/v1/chat/completions/input_tokens", "Count the tokens of a chat", false, "messages"},
    {kPost, "/chat/completions/input_tokens", "Count the tokens of a chat", false, "messages"},
    {kPost, "/v1/messages", "Answer a chat, as Anthropic does", true, "messages, max_tokens"},
    {kPost, "/v1/messages/count_tokens", "Count the tokens of such a chat", false, "messages"},
    {kPost, "/v1/responses", "Make a response, as OpenAI does", true, "input"},
    {kPost, "/responses", "Make a response, as OpenAI does", true, "input"},
    {kPost, "/v1/responses/input_tokens", "Count the tokens of a response's input", false, "input"},
    {kPost, "/responses/input_tokens", "Count the tokens of a response's input", false, "input"},
    {kGet, "/v1/responses/{id}", "A stored response"},
    {kDelete, "/v1/responses/{id}", "Forget a stored response"},
    {.method = kPost, .path = "/v1/responses/{id}/cancel", .summary = "Stop a response", .body = false},
    {.method = kGet,
     .path = "/v1/responses/{id}/input_items",
     .summary = "What a response was made from",
     .query = "limit, order, after"},
    {kPost, "/v1/completions", "Go on with a text, as OpenAI does", true, "prompt"},
    {kPost, "/completion", "Go on with a text, as llama-server does", true, "prompt"},
    {kPost, "/completions", "Go on with a text, as llama-server does", true, "prompt"},
    {kPost, "/infill", "Fill the gap between two texts", true, "input_prefix, input_suffix"},
    {kPost, "/generate", "Go on with a text; plain words, streaming by default", true, "prompt"},
    {kPost, "/v1/sessions", "Open a session: an exact history that the server keeps"},
    {kGet, "/v1/sessions", "The caller's sessions"},
    {kGet, "/v1/sessions/{id}", "One session"},
    {kDelete, "/v1/sessions/{id}", "End a session"},
    {kPost, "/v1/sessions/{id}/append", "Add input to a session"},
    {kPost, "/v1/sessions/{id}/generate", "Let the model go on in a session", true},
    {.method = kPost, .path = "/v1/sessions/{id}/cancel", .summary = "Stop what runs in a session", .body = false},
    {kPost, "/v1/sessions/{id}/fork", "A second session with the same history"},
    {.method = kGet,
     .path = "/v1/stream",
     .summary = "Go on with a stream from the byte after `from`, or after Last-Event-ID",
     .query = "conv_id, from",
     .answer = "text/event-stream"},
    {.method = kDelete, .path = "/v1/stream", .summary = "Stop a stream", .query = "conv_id", .answer = "204"},
    {kPost, "/v1/streams/lookup", "Which of these streams there are", false, "conversation_ids"},
    {kPost, "/tokenize", "Text to tokens", false, "content"},
    {kPost, "/detokenize", "Tokens to text", false, "tokens"},
    {kPost, "/apply-template", "Messages to the prompt that the model sees", false, "messages"},
};

}  // namespace

std::span<const RouteText> route_texts() { return kTexts; }

}  // namespace chasqui
