#include "base/energy_tally.h"

#include <algorithm>

namespace chasqui {

void EnergyTally::lift_taken(std::int64_t to) {
  std::int64_t before = taken_.load();
  while (to > before && !taken_.compare_exchange_weak(before, to)) {
  }
}

void EnergyTally::add(std::int64_t microjoules, TimePoint now, bool of_requests) {
  const std::int64_t measured = measured_.load() + microjoules;
  // An idle machine tells nothing of what a step takes.
  if (of_requests && microjoules > 0) power_.store(static_cast<double>(microjoules) / to_seconds(since_reading(now)));
  if (!of_requests) lift_taken(measured);  // before another thread can see it
  read_at_.store(now.time_since_epoch().count());
  measured_.store(measured);
}

std::int64_t EnergyTally::take(TimePoint now) {
  const std::int64_t measured = measured_.load();
  // However late the next reading is, what is taken is never far from what was measured.
  const Duration since = std::clamp(since_reading(now), Duration::zero(), kEvery);
  const std::int64_t so_far = measured + static_cast<std::int64_t>(power_.load() * to_seconds(since));
  std::int64_t before = taken_.load();
  while (so_far > before && !taken_.compare_exchange_weak(before, so_far)) {
  }
  return std::max<std::int64_t>(so_far - before, 0);
}

}  // namespace chasqui
