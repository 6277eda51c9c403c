// What decoding took at a start with each number of compute threads (docs/threads.md), so that a later start on the
// same machine need not measure it again. Plain values; their keeper sees to it that they are of such a model.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace chasqui {

struct ThreadFigure {
  std::int32_t rows = 0;     // of the batch
  std::int32_t threads = 0;  // that computed it
  Duration took{};

  bool operator==(const ThreadFigure&) const = default;
};
// In the order in which they were measured: few threads first, since what they take is the measure for more.
using ThreadFigures = std::vector<ThreadFigure>;

}  // namespace chasqui
