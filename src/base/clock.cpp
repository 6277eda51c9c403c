#include "base/clock.h"

#include <time.h>

#include "base/thread_time.h"
#include "base/wall_time.h"

namespace chasqui {

TimePoint RealClock::now() const { return std::chrono::steady_clock::now(); }

std::int64_t RealClock::unix_seconds() const {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

namespace {

Duration read_clock(clockid_t clock) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return Duration::zero();
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Duration thread_time() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

Duration thread_time([[maybe_unused]] int number) {
#ifdef __linux__
  // The clock that pthread_getcpuclockid() names, made of the number as the C libraries make it.
  constexpr unsigned kOfThread = 4;
  constexpr unsigned kComputing = 2;
  return read_clock(static_cast<clockid_t>(~static_cast<unsigned>(number) << 3 | kOfThread | kComputing));
#else
  return Duration::zero();
#endif
}

Duration process_time() { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

std::int64_t unix_nanoseconds_of_zero() {
  using std::chrono::nanoseconds;
  const nanoseconds calendar = std::chrono::system_clock::now().time_since_epoch();
  const nanoseconds steady = RealClock().now().time_since_epoch();
  return (calendar - steady).count();
}

}  // namespace chasqui
