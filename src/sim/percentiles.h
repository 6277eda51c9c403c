// Percentiles of many durations: exact while there are few, then from buckets that are within 0.4 % of each value.
// The largest is always exact. A plain value; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace chasqui {

class Percentiles {
 public:
  void add(Duration value);

  std::uint64_t count() const { return count_; }
  // The smallest value that at least `share` of all values do not exceed; in milliseconds; 0 when there are none.
  double at(double share) const;
  double largest() const { return to_milliseconds(largest_); }
  double mean() const;

 private:
  void fold();
  static std::size_t bucket(std::uint64_t us);
  static double middle(std::size_t bucket);

  mutable std::vector<Duration> exact_;  // sorted when asked
  mutable bool sorted_ = false;
  std::vector<std::uint32_t> buckets_;  // empty while values are exact
  std::uint64_t count_ = 0;
  Duration largest_{};
  double sum_ms_ = 0;
};

}  // namespace chasqui
