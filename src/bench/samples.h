// Every measurement of one kind, exactly: a million of them take 4 MB, sorting them is done once at the end, and no
// bucket has to be chosen before the values are known. Percentiles of several groups come from their samples together,
// never from their percentiles. Single-threaded.
#pragma once

#include <cstddef>
#include <vector>

namespace chasqui::bench {

class Samples {
 public:
  void add(double value) { values_.push_back(static_cast<float>(value)); }
  void add(const Samples& other) { values_.insert(values_.end(), other.values_.begin(), other.values_.end()); }

  std::size_t count() const { return values_.size(); }
  // The smallest value that at least `percent` of all are not above (nearest rank). 0 when there is none.
  double percentile(double percent) const;
  double most() const { return percentile(100); }
  double mean() const;

 private:
  std::vector<float> values_;
};

}  // namespace chasqui::bench
