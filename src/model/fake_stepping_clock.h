// A clock for tests of what long decodes do, without long decodes. One thread.
#pragma once

#include "base/clock.h"

namespace chasqui {

// Each look at it takes as long as it is told to: so long is each operation of a decode.
class SteppingClock final : public Clock {
 public:
  TimePoint now() const override { return now_ += step; }
  std::int64_t unix_seconds() const override { return 0; }

  Duration step = microseconds(1);

 private:
  mutable TimePoint now_{};
};

}  // namespace chasqui
