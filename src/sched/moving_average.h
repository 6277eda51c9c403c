// How what is measured is followed: the newest value has so much weight. Pure.
#pragma once

#include <algorithm>

namespace chasqui {

// Of what the machine takes: other processes come and go.
constexpr double kQuickWeight = 0.25;
// Of what requests are like.
constexpr double kSlowWeight = 0.1;
// A time that the system interrupted says little about the next one: it counts as at most so many times the usual.
constexpr double kSurprise = 3;

// 0: nothing was measured yet.
inline void follow_time(double measured, double& mean) {
  mean = mean > 0 ? mean + kQuickWeight * (std::min(measured, kSurprise * mean) - mean) : measured;
}

}  // namespace chasqui
