#include "base/clock.h"

#include <time.h>

#include "base/thread_time.h"
#include "base/wall_time.h"

namespace chasqui {

TimePoint RealClock::now() const { return std::chrono::steady_clock::now(); }

std::int64_t RealClock::unix_seconds() const {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Duration thread_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::int64_t unix_nanoseconds_of_zero() {
  using std::chrono::nanoseconds;
  const nanoseconds calendar = std::chrono::system_clock::now().time_since_epoch();
  const nanoseconds steady = RealClock().now().time_since_epoch();
  return (calendar - steady).count();
}

}  // namespace chasqui
