// The tensors of a model that mkmodel writes. Pure values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ggml.h>

#include "shapes.h"

namespace mkmodel {

// A tensor to be written: its extents (contiguous first), and what its elements are like.
struct TensorPlan {
  enum class Fill { random, constant, state_decay };

  std::string name;
  std::vector<std::int64_t> extents;
  ggml_type type = GGML_TYPE_F32;
  Fill fill = Fill::random;
  float value = 0;  // random: standard deviation; constant: the value
};

std::vector<TensorPlan> plan_tensors(const Shape& shape);

}  // namespace mkmodel
