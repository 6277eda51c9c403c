// Puts the table of routes (api/routes/route_table) into a router, behind the gate: which host, which web page, whose
// key. Built once at start.
#pragma once

#include "net/router.h"

namespace chasqui {

struct Node;

// For a request that cannot be read so far that it has a path; all others get what their route's dialect says.
net::HttpResponse pathless_fault(int status, std::string_view message);

// `node` outlives the router, and gets the document about its routes.
void add_routes(net::Router& router, Node& node);

}  // namespace chasqui
