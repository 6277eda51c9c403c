// What a model needs of the machine's memory once it is loaded, predicted from the head of its file, and how much
// models that are loaded may need together (--models-memory). The prefix cache is not in it: that has a limit of its
// own, and stays when the model is unloaded. At start, and on the thread that loads; reads files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/config.h"
#include "base/error.h"
#include "model/gguf_summary.h"

namespace chasqui {

// "6G", "500 MiB", "1024": bytes. Errors say what is allowed.
Result<std::uint64_t> read_bytes(std::string_view text);

// --models-memory, or three quarters of what the machine or its control group has: the last quarter is of the caches.
std::uint64_t models_memory(const ServeConfig& config);

// What the cells of a model may take where --ctx-size does not say: its part of what is free, but no more than of what
// models may need together, so that it can be told before it is loaded.
std::uint64_t cell_bytes_of(const ServeConfig& config, std::uint64_t free_bytes, std::uint64_t weights, bool gpu);

// Weights, cells and states, and what a step needs, of all workers and of the draft model. `draft`: null where there is
// none. Pure.
std::uint64_t memory_needed(const ServeConfig& config, const GgufSummary& model, const GgufSummary* draft, bool gpu);
// 0: it cannot be told, since the file is not there, or broken.
std::uint64_t memory_needed(const ServeConfig& config);

// Errors: it needs more than there may be, beside so much that stays loaded.
Result<void> check_fits(const ServeConfig& config, std::uint64_t needed, std::uint64_t beside);

}  // namespace chasqui
