// The one list of routes: method, path, who may call it, handler. Everything that is not listed as open needs a key
// when keys are configured. Built once at start.
#pragma once

#include "api/service.h"
#include "net/router.h"

namespace chasqui {

// For the router's own errors: the API's shape.
net::HttpResponse http_error(int status, std::string_view message);

// `service` outlives the router.
void add_routes(net::Router& router, Service& service);

}  // namespace chasqui
