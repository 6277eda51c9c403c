// Counters, gauges and histograms, as Prometheus text and as one line of JSON. Each is a handful of relaxed atomics:
// writing costs nanoseconds and takes no lock; rendering reads them on any thread. Owned by the part that
// counts, declared with its name and help (base/metric_set), listed in a MetricsPage by reference; both must outlive
// the page, or are retired before they go. Writers: any thread. MetricsPage: one thread.
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

class MetricRow;
class MetricSet;

class Counter {
 public:
  Counter() = default;
  Counter(MetricSet& set, MetricRow row);

  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  Gauge() = default;
  Gauge(MetricSet& set, MetricRow row);

  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

// For what is no whole number. One writer where it counts.
class FloatGauge {
 public:
  FloatGauge(MetricSet& set, MetricRow row);

  void set(double value) { value_.store(value, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

// Fixed upper bounds, given at construction in ascending order; values are in the unit of the metric's name.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  Histogram(MetricSet& set, MetricRow row, std::vector<double> bounds = latency_seconds());
  // 1 ms to 60 s, three buckets a decade: for anything that a client waits for.
  static std::vector<double> latency_seconds();
  // 1, 2, 4 … up to `last`: for rows, tokens, sizes.
  static std::vector<double> powers_of_two(std::uint64_t last);

  void observe(double value, std::uint64_t times = 1);

  const std::vector<double>& bounds() const { return bounds_; }
  std::uint64_t bucket(std::size_t i) const { return buckets_[i].load(std::memory_order_relaxed); }
  std::uint64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> buckets_;  // bounds_.size() + 1, the last is +Inf
  std::atomic<double> sum_{0};
};

// What GET /metrics shows. `labels` is the inside of the braces, for example `reason="stop"`. What is added again under
// the same name and labels is shown as one sum: that is how several workers count together.
class MetricsPage {
 public:
  void add(std::string name, std::string help, const Counter& counter, std::string labels = {});
  void add(std::string name, std::string help, const Gauge& gauge, std::string labels = {});
  // `shown`: those of its bounds that make a bucket of the page; empty: all. Many labels need few buckets.
  void add(std::string name, std::string help, const Histogram& histogram, std::string labels = {},
           std::vector<double> shown = {});
  // A gauge or counter that is computed when the page is read; `read` runs on the reader's thread.
  void add_computed(std::string name, std::string help, std::function<double()> read, std::string labels = {});
  void add_computed_counter(std::string name, std::string help, std::function<double()> read, std::string labels = {});
  // Stands in the JSON form only, under names that Prometheus would not like.
  void add_to_json(std::string name, std::string help, const Histogram& histogram);

  // Counters and gauges that are added from now on have these labels before their own; empty: none. Histograms never
  // have: repeated for each worker they would be most of the page.
  void label_with(std::string labels) { labels_ = std::move(labels); }

  // What is added from now on is `owner`'s, who may go before the page does; null: it outlives the page.
  void belong_to(const void* owner) { owner_ = owner; }
  // Nothing of the owner's is read any more. What its counters and histograms have counted stays in the sums, so that
  // they never fall; its gauges leave them.
  void retire(const void* owner);
  // Nothing of the owner's is read any more, and what it alone had is not on the page any more, as if it had never
  // been.
  void forget(const void* owner);

  // Buckets of what is added from now on are the last to be left out by fit(): others have chosen them.
  void keep_buckets(bool keep) { keep_buckets_ = keep; }
  // A gauge whose labels are made when the page is read, of at most `labels_max` bytes; `shape` has their names.
  void add_labelled(std::string name, std::string help, std::function<double()> read, std::string shape,
                    std::function<std::string()> labels, std::size_t labels_max);

  // When all is added: leaves out as much as it takes for a page of at most so many bytes, also after a year. First
  // goes every second bucket of the longest histogram, then of the next one …, once or twice; then the labels of
  // label_with(), whose samples become one sum; then more buckets.
  void fit(std::size_t bytes);
  // Of a rendered page.
  std::size_t bytes_at_most() const;

  // Prometheus text exposition 0.0.4. Metrics of one name stand together, in the order in which they were added. With a
  // prefix: only those whose names begin so.
  std::string render(std::string_view prefix = {}) const;
  // The same samples as one JSON object on one line, {"name{labels}":value,…}, and those of add_to_json().
  std::string render_json() const;

  // What there is, for the documentation: a line for each name.
  struct Family {
    std::string_view name, type, help;
    std::vector<std::string_view> labels;  // names of labels, as the first sample has them
    bool json_only = false;
  };
  std::vector<Family> families() const;

 private:
  struct Value {
    std::function<double()> read;
    const void* owner;
  };
  struct Counted {
    const Histogram* histogram;
    const void* owner;
  };
  struct Item {
    std::string name{}, help{}, labels{}, type{};
    std::string own_labels{};  // without those of label_with()
    bool json_only = false;
    bool whole = false;  // its values are whole numbers
    bool keeps_buckets = false;
    std::size_t labels_max = 0;  // of those made when the page is read
    std::function<std::string()> late_labels{};
    std::vector<Value> values{};                // their sum
    std::vector<Counted> histograms{};          // … or that of these
    double past = 0;                            // of values that were retired, or the sum of histograms that were
    std::vector<std::uint64_t> past_buckets{};  // … and what was in theirs; as many as all_bounds, and one
    std::vector<double> all_bounds{};           // of the histograms
    std::vector<double> bounds{};               // … that make a bucket of the page
    std::vector<std::string> heads{};           // `name{labels} ` of each sample, made once
    std::string comment{};                      // before the first item of the name, made once
  };
  template <class Sink>
  static void write(const Item& item, Sink&& sink);
  void put(Item item);
  void put_value(Item item, std::function<double()> read);
  void put_histogram(Item item, const Histogram& histogram);
  static void make_heads(Item& item);
  static std::size_t bytes_at_most(const Item& item);
  void sum_over_common_labels();
  bool thin_longest(std::size_t least, bool also_kept);

  std::vector<Item> items_;
  std::string labels_;
  const void* owner_ = nullptr;
  bool keep_buckets_ = false;
};

}  // namespace chasqui
