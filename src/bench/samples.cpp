#include "bench/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace chasqui::bench {

double Samples::percentile(double percent) const {
  if (values_.empty()) return 0;
  const double rank = std::ceil(percent / 100 * static_cast<double>(values_.size()));
  const std::size_t index =
      std::clamp<std::size_t>(static_cast<std::size_t>(std::max(rank, 1.0)), 1, values_.size()) - 1;
  std::vector<float> values = values_;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return static_cast<double>(values[index]);
}

double Samples::mean() const {
  if (values_.empty()) return 0;
  return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
}

}  // namespace chasqui::bench
