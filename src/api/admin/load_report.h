// How busy the node is, as a header on an answer for balancers that ask for it: ORCA's, in the form that vLLM gives it.
//
//   endpoint-load-metrics-format: TEXT  →  endpoint-load-metrics: TEXT named_metrics.kv_cache_usage_perc=0.25, …
//   endpoint-load-metrics-format: JSON  →  endpoint-load-metrics: JSON {"named_metrics":{"kv_cache_usage_perc":0.25,…}}
//
// Sums over all models, from what the workers wrote after their last steps. Loop thread.
#pragma once

#include "net/http_request.h"

namespace chasqui {

struct Node;

// Nothing for requests that do not ask, and for formats that are neither.
bool asks_for_load(const net::HttpRequest& request);
void add_load_report(const Node& node, const net::HttpRequest& request, net::HttpHeaders& out);

}  // namespace chasqui
