#include "base/energy_meter.h"

#include <algorithm>

namespace chasqui {

bool EnergyMeter::tells() const {
  return std::ranges::any_of(sources_, [](const auto& source) { return source->tells(); });
}

double EnergyMeter::take(TimePoint now) {
  constexpr double kJoule = 1e-6;
  std::int64_t mine = 0;
  for (const auto& source : sources_) mine += source->take(now, true);
  const std::int64_t all = for_requests_.fetch_add(mine) + mine;
  metrics_.joules.set(static_cast<double>(all) * kJoule);
  return static_cast<double>(mine) * kJoule;
}

void EnergyMeter::skip(TimePoint now) {
  for (const auto& source : sources_) source->take(now, false);
}

}  // namespace chasqui
