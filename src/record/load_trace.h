// The requests of a recording as a load that `chasqui bench --trace` sends to any server (bench/trace.h): when each of
// them came, how long its prompt was, how many tokens it might have and its class. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "record/record_format.h"

namespace chasqui {

struct LoadTrace {
  std::string lines;  // one for each request, in the order in which they came; the first comes at 0
  std::size_t requests = 0;
};

// Of all these streams together. Errors say what is wrong with a stream.
Result<LoadTrace> load_trace(const std::vector<const RecordStream*>& streams);

}  // namespace chasqui
