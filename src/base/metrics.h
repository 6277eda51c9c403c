// Counters, gauges and histograms in Prometheus text. Each is a handful of relaxed atomics: writing costs
// nanoseconds and takes no lock; rendering reads them on the loop. Owned by the part that counts, listed in a
// MetricsPage by reference; both must outlive the page. Writers: any thread. MetricsPage: built at start, then const.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace chasqui {

class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// Fixed upper bounds, given at construction in ascending order; values are in the unit of the metric's name.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  // 1 ms to 60 s, three buckets a decade: for anything that a client waits for.
  static std::vector<double> latency_seconds();
  // 1, 2, 4 … up to `last`: for rows, tokens, sizes.
  static std::vector<double> powers_of_two(std::uint64_t last);

  void observe(double value);

  const std::vector<double>& bounds() const { return bounds_; }
  std::uint64_t bucket(std::size_t i) const { return buckets_[i].load(std::memory_order_relaxed); }
  std::uint64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> buckets_;  // bounds_.size() + 1, the last is +Inf
  std::atomic<double> sum_{0};
};

// What GET /metrics shows. `labels` is the inside of the braces, for example `reason="stop"`.
class MetricsPage {
 public:
  void add(std::string name, std::string help, const Counter& counter, std::string labels = {});
  void add(std::string name, std::string help, const Gauge& gauge, std::string labels = {});
  void add(std::string name, std::string help, const Histogram& histogram, std::string labels = {});
  // A gauge that is computed when the page is read; `read` runs on the reader's thread.
  void add_computed(std::string name, std::string help, std::function<double()> read, std::string labels = {});

  // What is added from now on has these labels before its own; empty: none.
  void label_with(std::string labels) { labels_ = std::move(labels); }

  // Prometheus text exposition 0.0.4. Metrics of one name stand together, in the order in which they were added.
  std::string render() const;

 private:
  struct Item {
    std::string name, help, labels, type;
    std::function<void(std::string& out, const Item& item)> write;
  };
  void put(Item item);

  std::vector<Item> items_;
  std::string labels_;
};

}  // namespace chasqui
