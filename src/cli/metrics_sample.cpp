#include "cli/metrics_sample.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace chasqui::cli {
namespace {

std::optional<double> number(std::string_view text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// {a="b",c="d\"e"} without its braces; false when it is not that.
bool read_labels(std::string_view text, Labels& labels) {
  while (!text.empty()) {
    const std::size_t equals = text.find("=\"");
    if (equals == std::string_view::npos) return false;
    const std::string name(text.substr(0, equals));
    text.remove_prefix(equals + 2);
    std::string value;
    while (!text.empty() && text.front() != '"') {
      if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
      value += text.front();
      text.remove_prefix(1);
    }
    if (text.empty()) return false;
    text.remove_prefix(1);
    if (text.starts_with(',')) text.remove_prefix(1);
    labels[name] = value;
  }
  return true;
}

// The brace that ends the labels: one inside of a value does not.
std::size_t end_of_labels(std::string_view text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == '}' && !quoted) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::optional<Series> read_line(std::string_view line) {
  Series series;
  const std::size_t name_end = line.find_first_of("{ ");
  if (name_end == std::string_view::npos || name_end == 0) return std::nullopt;
  series.name = line.substr(0, name_end);
  line.remove_prefix(name_end);
  if (line.front() == '{') {
    const std::size_t end = end_of_labels(line);
    if (end == std::string_view::npos || !read_labels(line.substr(1, end - 1), series.labels)) return std::nullopt;
    line.remove_prefix(end + 1);
  }
  if (!line.starts_with(' ')) return std::nullopt;
  line.remove_prefix(1);
  const auto value = number(line.substr(0, line.find(' ')));
  if (!value || std::isnan(*value)) return std::nullopt;
  series.value = *value;
  return series;
}

bool matches(const Series& series, std::string_view name, const Labels& wanted) {
  if (series.name != name) return false;
  return std::all_of(wanted.begin(), wanted.end(), [&series](const auto& label) {
    const auto found = series.labels.find(label.first);
    return found != series.labels.end() && found->second == label.second;
  });
}

}  // namespace

MetricsSample MetricsSample::parse(std::string_view text) {
  MetricsSample out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('#')) continue;
    if (auto series = read_line(line)) out.series_.push_back(std::move(*series));
  }
  return out;
}

bool MetricsSample::has(std::string_view name) const {
  return std::any_of(series_.begin(), series_.end(), [name](const Series& s) { return s.name == name; });
}

double MetricsSample::sum(std::string_view name, const Labels& wanted) const {
  double out = 0;
  for (const Series& series : series_) {
    if (matches(series, name, wanted)) out += series.value;
  }
  return out;
}

std::vector<std::string> MetricsSample::values_of(std::string_view name, const std::string& label) const {
  std::vector<std::string> out;
  for (const Series& series : series_) {
    const auto found = series.labels.find(label);
    if (series.name != name || found == series.labels.end()) continue;
    if (std::find(out.begin(), out.end(), found->second) == out.end()) out.push_back(found->second);
  }
  return out;
}

std::map<double, double> MetricsSample::buckets(std::string_view name, const Labels& wanted) const {
  std::map<double, double> out;
  const std::string bucket = std::string(name) + "_bucket";
  for (const Series& series : series_) {
    const auto bound = series.labels.find("le");
    if (bound == series.labels.end() || !matches(series, bucket, wanted)) continue;
    if (const auto le = number(bound->second)) out[*le] += series.value;
  }
  return out;
}

double grown(const MetricsSample& before, const MetricsSample& now, std::string_view name, const Labels& wanted) {
  const double first = before.sum(name, wanted);
  const double last = now.sum(name, wanted);
  return last >= first ? last - first : last;
}

std::optional<double> quantile_between(const MetricsSample& before, const MetricsSample& now, std::string_view name,
                                       double quantile, const Labels& wanted) {
  const auto first = before.buckets(name, wanted);
  auto counted = now.buckets(name, wanted);
  if (counted.empty()) return std::nullopt;
  const bool restarted = !first.empty() && first.rbegin()->second > counted.rbegin()->second;
  for (auto& [bound, count] : counted) {
    const auto old = first.find(bound);
    if (!restarted && old != first.end()) count -= old->second;
  }
  const double total = counted.rbegin()->second;
  if (total <= 0) return std::nullopt;
  double low = 0, below = 0;
  for (const auto& [bound, count] : counted) {
    if (count >= quantile * total && count > below) {
      if (std::isinf(bound)) return low;
      return low + (bound - low) * (quantile * total - below) / (count - below);
    }
    if (!std::isinf(bound)) low = bound;
    below = count;
  }
  return low;
}

}  // namespace chasqui::cli
