#include "base/metric_set.h"

namespace chasqui {

std::string metric_label(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + std::string(value) + '"';
}

Counter::Counter(MetricSet& set, MetricRow row) { set.add(this, std::move(row)); }

Gauge::Gauge(MetricSet& set, MetricRow row) { set.add(this, std::move(row)); }

FloatGauge::FloatGauge(MetricSet& set, MetricRow row) { set.add(this, std::move(row)); }

Histogram::Histogram(MetricSet& set, MetricRow row, std::vector<double> bounds) : Histogram(std::move(bounds)) {
  set.add(this, std::move(row));
}

MetricRow&& MetricRow::also(std::string name, std::string help, std::string labels) && {
  others_.push_back({std::move(name), std::move(help), std::move(labels)});
  return std::move(*this);
}

MetricRow&& MetricRow::buckets(std::vector<double> shown) && {
  shown_ = std::move(shown);
  return std::move(*this);
}

MetricRow&& MetricRow::in_json_only() && {
  json_only_ = true;
  return std::move(*this);
}

namespace {

// Adds a metric under one of its names.
struct Adder {
  MetricsPage& page;
  const std::string& name;
  const std::string& help;
  const std::string& labels;
  const std::vector<double>& shown;
  bool json_only;

  void operator()(const Counter* counter) const { page.add(name, help, *counter, labels); }
  void operator()(const Gauge* gauge) const { page.add(name, help, *gauge, labels); }
  void operator()(const FloatGauge* gauge) const {
    const auto read = [gauge] { return gauge->value(); };
    if (name.ends_with("_total")) return page.add_computed_counter(name, help, read, labels);
    page.add_computed(name, help, read, labels);
  }
  void operator()(const Histogram* histogram) const {
    if (json_only) return page.add_to_json(name, help, *histogram);
    page.add(name, help, *histogram, labels, shown);
  }
};

}  // namespace

void MetricSet::add_to(MetricsPage& page) const {
  for (const auto& [metric, row] : entries_) {
    const auto& [name, help, labels] = row.own_;
    if (!name.empty()) std::visit(Adder{page, name, help, labels, row.shown_, row.json_only_}, metric);
  }
}

void MetricSet::add_others_to(MetricsPage& page, std::string_view prefix, const std::string& labels) const {
  for (const auto& [metric, row] : entries_) {
    for (const auto& [name, help, own_labels] : row.others_) {
      if (!name.starts_with(prefix)) continue;
      const std::string all = labels.empty() || own_labels.empty() ? labels + own_labels : labels + ',' + own_labels;
      std::visit(Adder{page, name, help, all, {}, false}, metric);
    }
  }
}

}  // namespace chasqui
