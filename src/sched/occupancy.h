// Who has what after a step: for those who watch the batch, and for recordings. A plain value.
#pragma once

#include <array>
#include <cstdint>

#include "core/types.h"

namespace chasqui {

struct Occupancy {
  std::int32_t running = 0;                             // requests with a slot
  std::array<std::int32_t, kServiceClasses> waiting{};  // … and without one, by class
  std::array<std::int32_t, kServiceClasses> streams{};  // that wait for their next token, by class
  TokenCount cells = 0;                                 // that hold something
  bool operator==(const Occupancy&) const = default;
};

}  // namespace chasqui
