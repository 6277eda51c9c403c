// GET /openapi.json: the API as an OpenAPI 3.1 document, made from the tables that the code runs on: the routes, the
// generation fields with their ranges, the error table. What each route is for stands in a table of its own, which has
// to have every route (a test). docs/openapi.json is the same text. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/http_request.h"

namespace chasqui {

struct RouteName {
  net::HttpMethod method;
  std::string_view path;  // "/v1/sessions/{id}"
  bool open;              // needs no key
};

// `prefix` is that of the server's paths, see --api-prefix.
std::string openapi_document(const std::vector<RouteName>& routes, std::string_view prefix = "");

// Routes that nothing has been written about.
std::vector<std::string> undescribed_routes(const std::vector<RouteName>& routes);

}  // namespace chasqui
