#include "base/metrics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json_writer.h"

namespace chasqui {
namespace {

// Prometheus has words for what JSON cannot say.
void append_value(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    append_json_number(out, value);
  }
}

void append_sample(std::string& out, std::string_view name, std::string_view labels, double value) {
  out += name;
  if (!labels.empty()) {
    out += '{';
    out += labels;
    out += '}';
  }
  out += ' ';
  append_value(out, value);
  out += '\n';
}

std::string with_label(std::string_view labels, std::string_view more) {
  std::string both(labels);
  if (!both.empty()) both += ',';
  both += more;
  return both;
}

void append_histogram(std::string& out, const std::string& name, const std::string& labels, const Histogram& h) {
  std::uint64_t cumulated = 0;
  for (std::size_t i = 0; i <= h.bounds().size(); ++i) {
    cumulated += h.bucket(i);
    std::string bound = "le=\"";
    if (i < h.bounds().size()) {
      append_json_number(bound, h.bounds()[i]);
    } else {
      bound += "+Inf";
    }
    bound += '"';
    append_sample(out, name + "_bucket", with_label(labels, bound), static_cast<double>(cumulated));
  }
  append_sample(out, name + "_sum", labels, h.sum());
  append_sample(out, name + "_count", labels, static_cast<double>(cumulated));
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), buckets_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1)) {
  CHECK(std::is_sorted(bounds_.begin(), bounds_.end()));
}

std::vector<double> Histogram::latency_seconds() {
  return {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60};
}

std::vector<double> Histogram::powers_of_two(std::uint64_t last) {
  std::vector<double> bounds;
  for (std::uint64_t bound = 1; bound <= last; bound *= 2) bounds.push_back(static_cast<double>(bound));
  return bounds;
}

void Histogram::observe(double value) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  buckets_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  double sum = sum_.load(std::memory_order_relaxed);
  while (!sum_.compare_exchange_weak(sum, sum + value, std::memory_order_relaxed)) {
  }
}

std::uint64_t Histogram::count() const {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) total += bucket(i);
  return total;
}

void MetricsPage::add(std::string name, std::string help, const Counter& counter, std::string labels) {
  put({std::move(name), std::move(help), std::move(labels), "counter", [&counter](std::string& out, const Item& item) {
         append_sample(out, item.name, item.labels, static_cast<double>(counter.value()));
       }});
}

void MetricsPage::add(std::string name, std::string help, const Gauge& gauge, std::string labels) {
  add_computed(
      std::move(name), std::move(help), [&gauge] { return static_cast<double>(gauge.value()); }, std::move(labels));
}

void MetricsPage::add(std::string name, std::string help, const Histogram& histogram, std::string labels) {
  put({std::move(name), std::move(help), std::move(labels), "histogram",
       [&histogram](std::string& out, const Item& item) { append_histogram(out, item.name, item.labels, histogram); }});
}

void MetricsPage::add_computed(std::string name, std::string help, std::function<double()> read, std::string labels) {
  put({std::move(name), std::move(help), std::move(labels), "gauge",
       [read = std::move(read)](std::string& out, const Item& item) {
         append_sample(out, item.name, item.labels, read());
       }});
}

void MetricsPage::put(Item item) {
  if (!labels_.empty()) item.labels = item.labels.empty() ? labels_ : with_label(labels_, item.labels);
  const auto last_of_name = std::ranges::find(items_.rbegin(), items_.rend(), item.name, &Item::name);
  items_.insert(last_of_name == items_.rend() ? items_.end() : last_of_name.base(), std::move(item));
}

std::string MetricsPage::render() const {
  std::string out;
  std::string_view previous;
  for (const Item& item : items_) {
    if (item.name != previous) {
      out += "# HELP " + item.name + ' ' + item.help + "\n# TYPE " + item.name + ' ' + item.type + '\n';
      previous = item.name;
    }
    item.write(out, item);
  }
  return out;
}

}  // namespace chasqui
