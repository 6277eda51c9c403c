// The one list of routes: method, path, who may call it, handler. Everything that is not listed as open needs a key
// when keys are configured. Built once at start.
#pragma once

#include <vector>

#include "api/openapi.h"
#include "api/service.h"
#include "net/router.h"

namespace chasqui {

// All of them, for the document about them.
std::vector<RouteName> route_names();

// For the router's own errors: the API's shape.
net::HttpResponse http_error(int status, std::string_view message);

// `service` outlives the router.
void add_routes(net::Router& router, Service& service);

}  // namespace chasqui
