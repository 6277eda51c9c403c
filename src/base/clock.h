// Time as an argument. RealClock is the only place that reads a clock; everything that decides takes a TimePoint,
// so that tests and the simulator run on virtual time. Any thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace chasqui {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr TimePoint kNever = TimePoint::max();

inline double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}
inline double to_milliseconds(Duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
inline Duration from_milliseconds(double ms) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
}

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;              // monotonic
  virtual std::int64_t unix_seconds() const = 0;  // wall clock, only for time stamps that clients see
};

class RealClock final : public Clock {
 public:
  TimePoint now() const override;
  std::int64_t unix_seconds() const override;
};

// Moves only when told to. Single-threaded.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  std::int64_t unix_seconds() const override { return 1'700'000'000; }
  void advance(Duration d) { now_ += d; }

 private:
  TimePoint now_{};
};

}  // namespace chasqui
