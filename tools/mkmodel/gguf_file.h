// Writes one model of a Shape as a GGUF file: the keys, the vocabulary copied from a vocab-only file of llama.cpp, a
// ChatML template, and random tensors streamed to disk. Throws std::runtime_error with a sentence when it cannot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor_plan.h"

struct gguf_context;

namespace mkmodel {

struct Written {
  std::uint64_t bytes = 0;
  std::uint64_t parameters = 0;
};

// Keys that are in `gguf` already, and these tensors. The file appears under its name only when it is complete.
Written write_file(gguf_context* gguf, const std::vector<TensorPlan>& plan, const std::string& path,
                   std::uint64_t seed);
Written write_model(const Shape& shape, const std::string& vocabularies, const std::string& path, std::uint64_t seed);

}  // namespace mkmodel
