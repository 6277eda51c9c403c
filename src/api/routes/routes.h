// Puts the table of routes (api/routes/route_table) into a router, behind the gate: which host, which web page, whose
// key. Built once at start.
#pragma once

#include <string>

#include "api/core/key_ring.h"
#include "net/router.h"

namespace chasqui {

struct Node;
namespace net {
struct WebPolicy;
}

// For a request that cannot be read so far that it has a path; all others get what their route's dialect says.
net::HttpResponse pathless_fault(int status, std::string_view message);

// `node` outlives the router, and gets the document about its routes.
void add_routes(net::Router& router, Node& node);

// Answers a POST request that came through no gate, as its route does, for a caller that is known: a line of a batch.
// REQUIRES: the path is that of a route
net::Awaitable<void> answer_for(Node& node, std::string path, Caller caller, net::HttpExchange& exchange);

// Those of the admin listener: no client's routes, and no keys of clients on this machine. Both outlive the router.
void add_admin_routes(net::Router& router, Node& node, const net::WebPolicy& web);

}  // namespace chasqui
