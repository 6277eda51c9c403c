// The routes: one row each. Requests are routed by it, /openapi.json (and docs/openapi.json) is written from it, and
// tests ask every row for its key and look for it in docs/*.md. A new route is a new row. Constant; any thread.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "api/batch/batch_desk.h"
#include "api/delivery/delivery.h"
#include "api/llama_server/text_tools.h"
#include "api/openai/embeddings.h"
#include "api/openai/responses.h"
#include "api/session/sessions.h"
#include "net/http_request.h"

namespace chasqui {

struct Node;

// Without a key; with one, where the server has keys; on the admin listener, for those that KeyRing::may_operate().
enum class Access { open, key, operators };

using CallHandler = Handled (*)(Call);
using NodeHandler = Handled (*)(const Node&, Call);
using TableHandler = Handled (*)(const ModelTable&, Call);
// A route is served by a handler, or by what is particular about it: how a body becomes an answer, or a command. Those
// have one handler for all of their kind.
using Handler = std::variant<CallHandler, NodeHandler, TableHandler, PrepareAnswer, TextTool, PrepareVectors,
                             SessionCommand, ResponseCommand, BatchCommand>;

// What its entry in the OpenAPI document says, and what follows from that: a route that generates gets a model that is
// loaded, as does each with a PrepareAnswer or PrepareVectors, and gets a form as JSON if it accepts one.
struct RouteText {
  std::string_view summary;
  bool generates = false;          // takes the generation fields, and may stream
  std::string_view required = {};  // fields that its body must have, with ", " between them
  bool body = true;                // of POST
  std::string_view query = {};     // parameters of its query
  std::string_view answer = {};    // "application/json" unless said; "204": nothing
  std::string_view accepts = {};   // … of its body
};

struct Route {
  net::HttpMethod method;
  std::string_view path;   // "/v1/sessions/{id}"
  const Dialect* dialect;  // of its errors
  Access access;
  Handler handler;
  RouteText text;
};

std::span<const Route> all_routes();
// Those of the admin listener, which has no others.
std::span<const Route> admin_routes();

// Of the path, also where it has no route.
const Dialect& dialect_of(std::string_view path);

}  // namespace chasqui
