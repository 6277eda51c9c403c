#include "cli/top_lists.h"

#include <algorithm>
#include <cstdio>

#include "cli/machine.h"
#include "cli/terminal.h"

namespace chasqui::cli {
namespace {

constexpr std::size_t kTenantColumns = 16;  // a key without a name is known by its hash, which is longer
constexpr std::size_t kModelColumns = 26;
constexpr std::size_t kStateColumns = 12;  // a reason for a failure is for `chasqui ps`

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string shown_tenant(const std::string& tenant) {
  return tenant.empty() ? "-" : cut(harmless(tenant), kTenantColumns);
}

double rate(std::int64_t grown, bool known, double seconds) {
  return known ? static_cast<double>(std::max<std::int64_t>(grown, 0)) / seconds : 0;
}

std::string age(double milliseconds) {
  const double seconds = milliseconds / 1000;
  if (seconds < 100) return print("%.1f s", seconds);
  return seconds < 6000 ? print("%.0f min", seconds / 60) : print("%.0f h", seconds / 3600);
}

// `all` lines, of which the last ones may not fit.
void cut_to(std::vector<std::string>& lines, std::size_t all, std::size_t most) {
  if (all + 1 == lines.size() && lines.size() <= most + 1) return;
  lines.resize(std::min(lines.size(), most));
  lines.push_back(print("  … and %zu more", all + 1 - lines.size()));
}

}  // namespace

std::string cut(const std::string& text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins && seen++ == columns) return text.substr(0, i);
  }
  return text;
}

std::vector<std::string> model_lines(const std::vector<ServedLine>& models, const SequenceSample& now,
                                     const std::optional<SequenceSample>& before, double seconds, std::size_t most) {
  std::vector<std::string> lines{
      print("%-28s %-12s %8s %8s %10s %9s", "model", "state", "running", "waiting", "tokens/s", "memory")};
  for (const ServedLine& model : models) {
    const auto found = std::ranges::find(now.models, model.name, &ModelRow::model);
    const ModelRow row = found != now.models.end() ? *found : ModelRow{model.name};
    const std::int64_t grown = before ? now.grown(*before, row) : 0;
    lines.push_back(print("  %-26s %-12s %8lld %8lld %10.1f %9s", cut(harmless(model.name), kModelColumns).c_str(),
                          cut(harmless(model.state), kStateColumns).c_str(), static_cast<long long>(row.running),
                          static_cast<long long>(row.waiting), rate(grown, before.has_value(), seconds),
                          model.bytes > 0 ? bytes_in_words(model.bytes).c_str() : ""));
  }
  cut_to(lines, models.size(), most);
  return lines;
}

std::vector<std::string> tenant_lines(const SequenceSample& now, const std::optional<SequenceSample>& before,
                                      double seconds, std::size_t most) {
  std::vector<TenantRow> rows = now.tenants;
  std::ranges::stable_sort(
      rows, [](const TenantRow& a, const TenantRow& b) { return a.running + a.waiting > b.running + b.waiting; });
  std::vector<std::string> lines{print("%-18s %8s %8s %10s", "tenant", "running", "waiting", "tokens/s")};
  for (const TenantRow& row : rows) {
    const std::int64_t grown = before ? now.grown(*before, row) : 0;
    lines.push_back(print("  %-16s %8lld %8lld %10.1f", shown_tenant(row.tenant).c_str(),
                          static_cast<long long>(row.running), static_cast<long long>(row.waiting),
                          rate(grown, before.has_value(), seconds)));
  }
  cut_to(lines, rows.size(), most);
  return lines;
}

std::vector<std::string> sequence_lines(const SequenceSample& now, const std::optional<SequenceSample>& before,
                                        double seconds, std::size_t most) {
  const auto other = [&](const SequenceRow& row) { return row.model != now.sequences.front().model; };
  const bool several = std::ranges::any_of(now.sequences, other);
  // What changes while one watches comes within 80 columns.
  std::vector<std::string> lines{print("%-10s %-16s %-11s %-7s %8s %13s %8s %15s %7s", "sequence", "tenant", "class",
                                       "state", "tokens/s", "answer", "age", "prompt read", "cached")};
  if (several) lines[0] += "  model";
  for (const SequenceRow& row : now.sequences) {
    const std::int64_t grown = before ? now.grown(*before, row) : 0;
    const std::string read = print("%lld/%lld", static_cast<long long>(row.read), static_cast<long long>(row.prompt));
    const std::string said =
        print("%lld/%lld", static_cast<long long>(row.generated), static_cast<long long>(row.most));
    lines.push_back(print("  %-8lld %-16s %-11s %-7s %8.1f %13s %8s %15s %7lld", static_cast<long long>(row.id),
                          shown_tenant(row.tenant).c_str(), harmless(row.service_class).c_str(),
                          harmless(row.state).c_str(), rate(grown, before.has_value(), seconds), said.c_str(),
                          age(row.age_ms).c_str(), read.c_str(), static_cast<long long>(row.cached)));
    if (several) lines.back() += "  " + harmless(row.model);
  }
  cut_to(lines, static_cast<std::size_t>(now.total), most);
  return lines;
}

}  // namespace chasqui::cli
