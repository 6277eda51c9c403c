// GET /debug/trace?seconds=5: what the workers and the requests did in that time, as a file that Chrome's tracing view
// and Perfetto open. Steps come from the workers' rings, which they write anyway; requests are those that ended
// meanwhile. Loop thread; the file is written in the offload pool.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/core/call.h"
#include "api/core/request_log.h"
#include "engine/step_ring.h"

namespace chasqui {

// With keys, every client that has one; without, only clients on this machine.
Handled handle_debug_trace(Call call);

// By worker, in the order in which they were computed.
using StepsByWorker = std::vector<std::vector<StepRecord>>;

// {"traceEvents":[…]}, times in microseconds since `zero`.
std::string chrome_trace(const StepsByWorker& steps, const std::vector<std::shared_ptr<RequestRecord>>& requests,
                         TimePoint zero);

}  // namespace chasqui
