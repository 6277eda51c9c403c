// The table of metrics. What counts something is declared together with all that is said of it: name, help, labels,
// and the names that other servers have for it. The declaration enters it in a MetricSet, and GET /metrics and
// docs/metrics.md are made from that: a new metric is its declaration, and the line that counts. Counting knows
// nothing of the set.
//
//   struct ParcelMetrics : MetricSet {
//     Counter sent{*this, {"parcels_sent_total", "Parcels that were sent."}};
//     Counter lost{*this, {"parcels_lost_total", "Parcels that were lost, by where.", "where=\"sea\""}};
//   };
//
// A set and its metrics belong to one object that does not move. Filled as that is made, then const; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/metrics.h"

namespace chasqui {

// `name="value"`, the inside of the braces; `value` needs no escapes.
std::string metric_label(std::string_view name, std::string_view value);

// What is said of a metric. The help of a name is that of its first row; the type of a FloatGauge is counter where its
// name ends in _total.
class MetricRow {
 public:
  MetricRow() = default;  // has names of others only
  MetricRow(std::string name, std::string help, std::string labels = {})
      : own_{std::move(name), std::move(help), std::move(labels)} {}

  // Under another name, too. What several rows call the same, with the same labels, is shown as their sum.
  MetricRow&& also(std::string name, std::string help, std::string labels = {}) &&;
  // Those bounds of a histogram that make a bucket under its own name; all, where this is not said.
  MetricRow&& buckets(std::vector<double> shown) &&;
  // A histogram that stands in the JSON form only.
  MetricRow&& in_json_only() &&;

 private:
  friend class MetricSet;
  struct Name {
    std::string name{}, help{}, labels{};
  };
  Name own_{};
  std::vector<Name> others_{};
  std::vector<double> shown_{};
  bool json_only_ = false;
};

class MetricSet {
 public:
  using Metric = std::variant<const Counter*, const Gauge*, const FloatGauge*, const Histogram*>;

  MetricSet() = default;
  MetricSet(const MetricSet&) = delete;
  MetricSet& operator=(const MetricSet&) = delete;

  void add(Metric metric, MetricRow row) { entries_.emplace_back(metric, std::move(row)); }
  // All that have a name of their own.
  void add_to(MetricsPage& page) const;
  // All that are also known by a name that begins with `prefix`; `labels` come before those of the name.
  void add_others_to(MetricsPage& page, std::string_view prefix, const std::string& labels = {}) const;

 private:
  std::vector<std::pair<Metric, MetricRow>> entries_;
};

// A metric for each value of a label: row(i) is what is said of the i-th.
template <class T, std::size_t N>
class MetricArray {
 public:
  MetricArray(MetricSet& set, MetricRow (*row)(std::size_t)) {
    for (std::size_t i = 0; i < N; ++i) set.add(&each_[i], row(i));
  }

  T& operator[](std::size_t i) { return each_[i]; }
  const T& operator[](std::size_t i) const { return each_[i]; }
  const T* begin() const { return each_; }
  const T* end() const { return each_ + N; }
  static constexpr std::size_t size() { return N; }

 private:
  T each_[N];
};

}  // namespace chasqui
