// What /metrics said at one time: counters, gauges and histograms of the Prometheus text format, and what happened
// between two such samples. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui::cli {

using Labels = std::map<std::string, std::string>;

struct Series {
  std::string name;
  Labels labels;
  double value = 0;
};

class MetricsSample {
 public:
  // Lines that are none are left out.
  static MetricsSample parse(std::string_view text);

  bool has(std::string_view name) const;
  // Of all series of that name whose labels have all of `wanted`.
  double sum(std::string_view name, const Labels& wanted = {}) const;
  // The values that a label has, in the order in which they come.
  std::vector<std::string> values_of(std::string_view name, const std::string& label) const;
  // Upper bound → count up to it, of a histogram whose series have all of `wanted`.
  std::map<double, double> buckets(std::string_view name, const Labels& wanted = {}) const;

 private:
  std::vector<Series> series_;
};

// How much a counter grew; what a new process has counted, when it fell.
double grown(const MetricsSample& before, const MetricsSample& now, std::string_view name, const Labels& wanted = {});
// The quantile of what a histogram has counted in between, interpolated within its bucket; nothing when that is
// nothing.
std::optional<double> quantile_between(const MetricsSample& before, const MetricsSample& now, std::string_view name,
                                       double quantile, const Labels& wanted = {});

}  // namespace chasqui::cli
