// What each route is for, in a line, and what the OpenAPI document says of its body. A constant table; any thread.
#pragma once

#include <span>
#include <string_view>

#include "net/http_request.h"

namespace chasqui {

struct RouteText {
  net::HttpMethod method;
  std::string_view path;
  std::string_view summary;
  bool generates = false;          // takes the generation fields, and may stream
  std::string_view required = {};  // fields that its body must have, with ", " between them
  bool body = true;                // of POST
  std::string_view query = {};     // parameters of its query
  std::string_view answer = {};    // "application/json" unless said; "204": nothing
};

std::span<const RouteText> route_texts();

}  // namespace chasqui
