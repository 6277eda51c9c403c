// Whether the node takes new requests, in the words of those who ask: GET /ready for load balancers, one word for
// HAProxy's agent checks, and /drain for operators, who change it. Nothing here waits for a worker. Loop thread.
#pragma once

#include <string_view>

#include "api/core/call.h"

namespace chasqui {

struct Node;

// 200 when new work is welcome; 503 while the node drains, is drained, or hangs.
Handled handle_ready(const Node& node, Call call);

// How it stands, and how many requests are in flight; POST takes the node out of service, DELETE back into it.
Handled handle_show_drain(const Node& node, Call call);
Handled handle_drain(const Node& node, Call call);
Handled handle_reopen(const Node& node, Call call);

// A line that HAProxy's agent check reads. "up" says how the node is, and only "ready" takes back a "drain" or "maint"
// that it was told before. No weight: one that follows the load moves sessions away from their node.
std::string_view agent_line(const Node& node);

}  // namespace chasqui
