// The backends of ggml that this process has loaded (model/llama_backends): once, before the first flag that may name
// a device is read. Main thread.
#pragma once

#include <vector>

#include "model/llama_backends.h"

namespace chasqui {

const std::vector<Backend>& backends();

// A line for each: what it brings, or a warning with the reason why it is not loaded.
void log_backends();

}  // namespace chasqui
