// When a point of the steady clock was by the calendar, for time stamps that go to others. Any thread.
// In clock.cpp, the only place that reads clocks.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace chasqui {

// Nanoseconds since 1970 of the steady clock's zero, as of now: add it to time_since_epoch() of a TimePoint. Later
// calls may differ when the calendar is set.
std::int64_t unix_nanoseconds_of_zero();

}  // namespace chasqui
