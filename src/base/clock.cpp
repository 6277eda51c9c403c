#include "base/clock.h"

namespace chasqui {

TimePoint RealClock::now() const { return std::chrono::steady_clock::now(); }

std::int64_t RealClock::unix_seconds() const {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace chasqui
