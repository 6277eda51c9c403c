#include "base/metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

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

std::string with_label(std::string_view labels, std::string_view more) {
  std::string both(labels);
  if (!both.empty()) both += ',';
  both += more;
  return both;
}

// What a value takes at most: of counts what a year of 100,000 a second comes to.
constexpr std::size_t kCountBytes = 13;
constexpr std::size_t kWholeBytes = 16;  // bytes at 300 MB a second, for a year
constexpr std::size_t kValueBytes = 24;
constexpr std::size_t kPageEstimate = 80 * 1024;  // of a rendered page
constexpr std::size_t kBucketsGood = 6;
constexpr std::size_t kBucketsMin = 4;  // histograms with fewer stay as they are

std::string comment_of(const std::string& name, const std::string& help, const std::string& type) {
  return "# HELP " + name + ' ' + help + "\n# TYPE " + name + ' ' + type + '\n';
}

// `name{labels} `, with the space before the value.
std::string sample_head(std::string name, std::string_view labels) {
  if (!labels.empty()) {
    name += '{';
    name += labels;
    name += '}';
  }
  return name + ' ';
}

std::string bound_label(double bound) {
  std::string out = "le=\"";
  append_value(out, bound);
  return out + '"';
}

// Names of labels in `a="1",b="2"`; values have no commas or quotes that are not escaped.
std::vector<std::string_view> label_names(std::string_view labels) {
  std::vector<std::string_view> names;
  std::size_t at = 0;
  while (at < labels.size()) {
    const std::size_t equals = labels.find("=\"", at);
    if (equals == std::string_view::npos) break;
    names.push_back(labels.substr(at, equals - at));
    std::size_t end = equals + 2;
    while (end < labels.size() && labels[end] != '"') end += labels[end] == '\\' ? 2 : 1;
    at = end + 2;
  }
  return names;
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

void Histogram::observe(double value, std::uint64_t times) {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  buckets_[static_cast<std::size_t>(at)].fetch_add(times, std::memory_order_relaxed);
  value *= static_cast<double>(times);
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
  Item item{.name = std::move(name), .help = std::move(help), .labels = std::move(labels), .type = "counter"};
  item.whole = true;
  put_value(std::move(item), [&counter] { return static_cast<double>(counter.value()); });
}

void MetricsPage::add(std::string name, std::string help, const Gauge& gauge, std::string labels) {
  Item item{.name = std::move(name), .help = std::move(help), .labels = std::move(labels), .type = "gauge"};
  item.whole = true;
  put_value(std::move(item), [&gauge] { return static_cast<double>(gauge.value()); });
}

void MetricsPage::add_computed(std::string name, std::string help, std::function<double()> read, std::string labels) {
  put_value({.name = std::move(name), .help = std::move(help), .labels = std::move(labels), .type = "gauge"},
            std::move(read));
}

void MetricsPage::add_computed_counter(std::string name, std::string help, std::function<double()> read,
                                       std::string labels) {
  put_value({.name = std::move(name), .help = std::move(help), .labels = std::move(labels), .type = "counter"},
            std::move(read));
}

void MetricsPage::add(std::string name, std::string help, const Histogram& histogram, std::string labels,
                      std::vector<double> shown) {
  put_histogram({.name = std::move(name),
                 .help = std::move(help),
                 .labels = std::move(labels),
                 .type = "histogram",
                 .bounds = std::move(shown)},
                histogram);
}

void MetricsPage::add_to_json(std::string name, std::string help, const Histogram& histogram) {
  Item item{.name = std::move(name), .help = std::move(help), .type = "histogram"};
  item.json_only = true;
  put_histogram(std::move(item), histogram);
}

void MetricsPage::add_labelled(std::string name, std::string help, std::function<double()> read, std::string shape,
                               std::function<std::string()> labels, std::size_t labels_max) {
  Item item{.name = std::move(name), .help = std::move(help), .labels = std::move(shape), .type = "gauge"};
  item.own_labels = item.labels;
  item.late_labels = std::move(labels);
  item.labels_max = labels_max;
  item.values.push_back({std::move(read), owner_});
  make_heads(item);
  put(std::move(item));
}

void MetricsPage::put_value(Item item, std::function<double()> read) {
  item.own_labels = item.labels;
  if (!labels_.empty()) item.labels = item.labels.empty() ? labels_ : with_label(labels_, item.labels);
  item.values.push_back({std::move(read), owner_});
  make_heads(item);
  put(std::move(item));
}

void MetricsPage::put_histogram(Item item, const Histogram& histogram) {
  item.all_bounds = histogram.bounds();
  item.past_buckets.resize(item.all_bounds.size() + 1);
  if (item.bounds.empty()) item.bounds = histogram.bounds();
  CHECK(std::ranges::includes(histogram.bounds(), item.bounds), "a bucket needs a bound of the histogram");
  item.own_labels = item.labels;
  item.keeps_buckets = keep_buckets_;
  item.histograms.push_back({&histogram, owner_});
  make_heads(item);
  put(std::move(item));
}

void MetricsPage::make_heads(Item& item) {
  item.comment = comment_of(item.name, item.help, item.type);
  item.heads.clear();
  if (item.all_bounds.empty()) {
    item.heads.push_back(sample_head(item.name, item.labels));
    return;
  }
  for (const double bound : item.bounds) {
    item.heads.push_back(sample_head(item.name + "_bucket", with_label(item.labels, bound_label(bound))));
  }
  item.heads.push_back(sample_head(item.name + "_bucket", with_label(item.labels, "le=\"+Inf\"")));
  item.heads.push_back(sample_head(item.name + "_sum", item.labels));
  item.heads.push_back(sample_head(item.name + "_count", item.labels));
}

std::size_t MetricsPage::bytes_at_most(const Item& item) {
  std::size_t bytes = item.labels_max;
  for (const std::string& head : item.heads) bytes += head.size() + 1;
  if (item.all_bounds.empty()) return bytes + (item.whole ? kWholeBytes : kValueBytes);
  return bytes + (item.heads.size() - 1) * kCountBytes + kValueBytes;
}

std::size_t MetricsPage::bytes_at_most() const {
  std::size_t bytes = 0;
  std::string_view previous;
  for (const Item& item : items_) {
    if (item.json_only) continue;
    if (item.name != previous) bytes += item.comment.size();
    previous = item.name;
    bytes += bytes_at_most(item);
  }
  return bytes;
}

void MetricsPage::fit(std::size_t bytes) {
  while (bytes_at_most() > bytes && thin_longest(kBucketsGood, false)) {
  }
  if (bytes_at_most() > bytes) sum_over_common_labels();
  while (bytes_at_most() > bytes && thin_longest(kBucketsMin, false)) {
  }
  while (bytes_at_most() > bytes && thin_longest(kBucketsMin, true)) {
  }
}

void MetricsPage::sum_over_common_labels() {
  std::vector<Item> all;
  all.swap(items_);
  for (Item& item : all) {
    item.labels = item.own_labels;
    make_heads(item);
    put(std::move(item));
  }
}

// All histograms of one name alike; the last bound stays. False: there is none with buckets to spare.
bool MetricsPage::thin_longest(std::size_t least, bool also_kept) {
  const Item* longest = nullptr;
  for (const Item& item : items_) {
    if (item.json_only || item.bounds.size() < least || (item.keeps_buckets && !also_kept)) continue;
    if (longest == nullptr || bytes_at_most(item) > bytes_at_most(*longest)) longest = &item;
  }
  if (longest == nullptr) return false;
  const std::string name = longest->name;
  for (Item& item : items_) {
    if (item.name != name) continue;
    std::vector<double> kept;
    for (std::size_t i = (item.bounds.size() + 1) % 2; i < item.bounds.size(); i += 2) kept.push_back(item.bounds[i]);
    item.bounds = std::move(kept);
    make_heads(item);
  }
  return true;
}

void MetricsPage::put(Item item) {
  const auto same = std::ranges::find_if(
      items_, [&item](const Item& old) { return old.name == item.name && old.labels == item.labels; });
  if (same != items_.end()) {
    // Fewer of them make a bucket of the page where fit() has left some out.
    CHECK(same->type == item.type && same->all_bounds == item.all_bounds,
          "a metric has one type, and one set of buckets");
    std::ranges::move(item.values, std::back_inserter(same->values));
    std::ranges::move(item.histograms, std::back_inserter(same->histograms));
    same->past += item.past;
    for (std::size_t i = 0; i < item.past_buckets.size(); ++i) same->past_buckets[i] += item.past_buckets[i];
    if (item.late_labels) same->late_labels = std::move(item.late_labels);  // of the one that stays longer
    return;
  }
  const auto last_of_name = std::ranges::find(items_.rbegin(), items_.rend(), item.name, &Item::name);
  items_.insert(last_of_name == items_.rend() ? items_.end() : last_of_name.base(), std::move(item));
}

void MetricsPage::forget(const void* owner) {
  std::erase_if(items_, [owner](Item& item) {
    const std::size_t mine = std::erase_if(item.values, [owner](const Value& value) { return value.owner == owner; });
    return mine > 0 && item.values.empty();
  });
}

void MetricsPage::retire(const void* owner) {
  for (Item& item : items_) {
    std::erase_if(item.values, [&](const Value& value) {
      if (value.owner != owner) return false;
      if (item.type == "counter") item.past += value.read();
      return true;
    });
    std::erase_if(item.histograms, [&](const Counted& counted) {
      if (counted.owner != owner) return false;
      item.past += counted.histogram->sum();
      for (std::size_t i = 0; i < item.past_buckets.size(); ++i) item.past_buckets[i] += counted.histogram->bucket(i);
      return true;
    });
    if (item.late_labels && item.values.empty()) item.late_labels = [] { return std::string(); };
  }
}

// sink(head, value) for each sample.
template <class Sink>
void MetricsPage::write(const Item& item, Sink&& sink) {
  double total = item.past;
  for (const Value& value : item.values) total += value.read();
  if (item.late_labels) return sink(sample_head(item.name, item.late_labels()), total);
  if (item.all_bounds.empty()) return sink(item.heads.front(), total);
  const std::vector<double>& all = item.all_bounds;
  std::uint64_t cumulated = 0;
  std::size_t shown = 0;
  for (std::size_t i = 0; i <= all.size(); ++i) {
    cumulated += item.past_buckets[i];
    for (const Counted& counted : item.histograms) cumulated += counted.histogram->bucket(i);
    const bool last = i == all.size();
    if (last || (shown < item.bounds.size() && item.bounds[shown] == all[i])) {
      sink(item.heads[shown++], static_cast<double>(cumulated));
    }
  }
  for (const Counted& counted : item.histograms) total += counted.histogram->sum();
  sink(item.heads[shown], total);
  sink(item.heads[shown + 1], static_cast<double>(cumulated));
}

std::string MetricsPage::render(std::string_view prefix) const {
  std::string out;
  out.reserve(kPageEstimate);
  std::string_view previous;
  for (const Item& item : items_) {
    if (item.json_only || !item.name.starts_with(prefix)) continue;
    if (item.name != previous) {
      out += item.comment;
      previous = item.name;
    }
    write(item, [&out](const std::string& head, double value) {
      out += head;
      append_value(out, value);
      out += '\n';
    });
  }
  return out;
}

std::string MetricsPage::render_json() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  for (const Item& item : items_) {
    write(item, [&json](const std::string& head, double value) {
      json.field(std::string_view(head).substr(0, head.size() - 1), value);
    });
  }
  json.end_object();
  return out;
}

std::vector<MetricsPage::Family> MetricsPage::families() const {
  std::vector<Family> out;
  for (const Item& item : items_) {
    if (!out.empty() && out.back().name == item.name) continue;
    out.push_back({item.name, item.type, item.help, label_names(item.labels), item.json_only});
  }
  return out;
}

}  // namespace chasqui
