// Random rows in the formats of ggml. Quantised blocks are made directly, a random payload under a constant scale,
// which is a hundred times faster than quantising random numbers. Pure; the same seed gives the same bytes everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor_plan.h"

namespace mkmodel {

// splitmix64: one multiplication-heavy step per eight bytes, good enough to look like noise.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();

 private:
  std::uint64_t state_;
};

// Fills `out` with elements of the tensor's type, beginning at the start of a row.
// REQUIRES: out.size() is a multiple of a row's bytes; type F32, F16, Q8_0, Q4_0, Q4_K or Q6_K.
void fill(const TensorPlan& tensor, Random& random, std::span<std::byte> out);

}  // namespace mkmodel
