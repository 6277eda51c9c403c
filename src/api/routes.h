// The one list of routes: method, path, who may call it, handler. Everything that is not listed as open needs a key
// when keys are configured. Built once at start.
#pragma once

#include <vector>

#include "api/openapi.h"
#include "net/router.h"

namespace chasqui {

struct Node;

// All of them, for the document about them.
std::vector<RouteName> route_names();

// `node` outlives the router, and gets the document about its routes.
void add_routes(net::Router& router, Node& node);

}  // namespace chasqui
