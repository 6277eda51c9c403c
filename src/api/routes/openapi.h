// GET /openapi.json: the API as an OpenAPI 3.1 document, made from the tables that the code runs on: the routes, the
// generation fields with their ranges, the error table. docs/openapi.json is the same text. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/routes/route_table.h"

namespace chasqui {

// `prefix` is that of the server's paths, see --api-prefix.
std::string openapi_document(std::span<const Route> routes, std::string_view prefix = "");

}  // namespace chasqui
