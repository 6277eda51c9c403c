// Writes a LoRA adapter with random weights for the model in a file: strong enough that greedy answers change. Throws
// std::runtime_error with a sentence when it cannot.
#pragma once

#include <cstdint>
#include <string>

#include "gguf_file.h"

namespace mkmodel {

Written write_adapter(const std::string& model, const std::string& path, std::uint64_t seed);

}  // namespace mkmodel
