// What people and machines ask about the server itself: GET /health, /metrics, /v1/models, /props. Nothing
// here waits for the worker: answers come from constants and atomics. Loop thread.
#pragma once

#include <string>

#include "api/core/call.h"

namespace chasqui {

struct Node;

// 200 while the loop (which answers this) and all workers move; 503 when a step of one hangs.
Handled handle_health(const Node& node, Call call);
Handled handle_metrics(const Node& node, Call call);
Handled handle_props(const Node& node, Call call);
Handled handle_version(Call call);
// 501: nothing of the server changes while it runs.
Handled handle_change_props(Call call);
Handled handle_models(const ModelTable& models, Call call);
Handled handle_model(const ModelTable& models, Call call);

// What GET /health and GET /props say, for doors that are not HTTP's.
Result<std::string> health_answer(const Node& node);
std::string props_answer(const Node& node, const ServedModel& served, const Caller& caller);

}  // namespace chasqui
