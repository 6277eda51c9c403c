#include "sim/report.h"

#include <array>
#include <cstdio>
#include <functional>

#include "base/json_writer.h"

namespace chasqui {
namespace {

std::string fixed(double value, int digits = 1) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
double per_second(std::uint64_t count, const Statistics& run) {
  return share(static_cast<double>(count), to_seconds(run.virtual_time));
}

// Columns as wide as their widest cell; the first one to the left, numbers to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  void append_to(std::string& out) const {
    std::vector<std::size_t> widths(rows_.front().size());
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string blank(widths[i] - row[i].size(), ' ');
        if (i > 0) out += "  ";
        out += i == 0 ? row[i] + blank : blank + row[i];
      }
      out += '\n';
    }
    out += '\n';
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

struct Latency {
  const char* name;
  Percentiles Group::*values;
};
constexpr Latency kLatencies[] = {
    {"ttft", &Group::ttft}, {"kept", &Group::kept}, {"itl", &Group::itl}, {"tpot", &Group::tpot}, {"e2e", &Group::e2e}};
constexpr std::pair<const char*, double> kShares[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}};

// One number of a run; the text and the JSON have the same ones.
struct Figure {
  const char* name;
  double (*read)(const Statistics&);
  int digits;
};
using Steps = Statistics::Steps;
const Figure kFigures[] = {
    {"virtual_s", [](const Statistics& s) { return to_seconds(s.virtual_time); }, 1},
    {"utilisation", [](const Statistics& s) { return share(to_seconds(s.steps().busy), to_seconds(s.virtual_time)); },
     3},
    {"tokens_per_s", [](const Statistics& s) { return per_second(s.all().tokens, s); }, 1},
    {"prompt_tokens_per_s", [](const Statistics& s) { return per_second(s.all().prompt_tokens, s); }, 1},
    {"good_requests_per_s", [](const Statistics& s) { return per_second(s.all().good, s); }, 3},
    {"good_tokens_per_s", [](const Statistics& s) { return per_second(s.all().good_tokens, s); }, 1},
    {"fairness", [](const Statistics& s) { return s.contention.jain(); }, 4},
    {"contended_s", [](const Statistics& s) { return s.contention.seconds(); }, 1},
    {"decode_steps", [](const Statistics& s) { return static_cast<double>(s.steps().decode); }, 0},
    {"prefill_steps", [](const Statistics& s) { return static_cast<double>(s.steps().prefill); }, 0},
    {"rows_per_decode",
     [](const Statistics& s) { return share(double(s.steps().decode_rows), double(s.steps().decode)); }, 2},
    {"rows_per_prefill",
     [](const Statistics& s) { return share(double(s.steps().prefill_rows), double(s.steps().prefill)); }, 2},
    {"passes_per_step", [](const Statistics& s) { return share(double(s.steps().passes), double(s.steps().count())); },
     3},
    {"moves", [](const Statistics& s) { return static_cast<double>(s.moves); }, 0},
    {"preemptions", [](const Statistics& s) { return static_cast<double>(s.all().preemptions); }, 0},
    {"recomputed_rows", [](const Statistics& s) { return static_cast<double>(s.recomputed_rows); }, 0},
    {"aborted_steps", [](const Statistics& s) { return static_cast<double>(s.steps().aborted); }, 0},
    {"failed_steps", [](const Statistics& s) { return static_cast<double>(s.steps().failed); }, 0},
    {"refusals", [](const Statistics& s) { return static_cast<double>(s.all().refusals); }, 0},
    {"prefix_tokens_shared", [](const Statistics& s) { return static_cast<double>(s.shared_tokens()); }, 0},
    {"prefix_tokens_cached", [](const Statistics& s) { return static_cast<double>(s.cached_tokens()); }, 0},
    {"returning_turns", [](const Statistics& s) { return static_cast<double>(s.returning().turns); }, 0},
    {"returning_found",
     [](const Statistics& s) { return share(double(s.returning().found), double(s.returning().turns)); }, 4},
    {"returning_tokens_found",
     [](const Statistics& s) { return share(double(s.returning().found_tokens), double(s.returning().said_tokens)); },
     4},
    {"returning_ttft_p95_ms", [](const Statistics& s) { return s.returning().ttft.at(0.95); }, 1},
    {"prompt_rows", [](const Statistics& s) { return static_cast<double>(s.prompt_rows); }, 0},
    {"prefix_waits", [](const Statistics& s) { return static_cast<double>(s.prefix_waits); }, 0},
    {"snapshots_kept", [](const Statistics& s) { return static_cast<double>(s.cache.insertions); }, 0},
    {"snapshots_evicted", [](const Statistics& s) { return static_cast<double>(s.cache.evictions); }, 0},
    {"most_passed", [](const Statistics& s) { return static_cast<double>(s.most_passed); }, 0},
    {"disk_reads", [](const Statistics& s) { return static_cast<double>(s.disk_reads); }, 0},
    {"draft_tokens", [](const Statistics& s) { return static_cast<double>(s.drafted); }, 0},
    {"draft_tokens_accepted", [](const Statistics& s) { return static_cast<double>(s.accepted); }, 0},
    {"adapter_switches", [](const Statistics& s) { return static_cast<double>(s.adapter_switches); }, 0},
};

void append_counts(std::string& out, const Statistics& run) {
  std::vector<std::string> head = {"requests", "all"};
  for (std::size_t i = 0; i < kOutcomes; ++i) head.emplace_back(name(static_cast<Outcome>(i)));
  for (const char* each : {"good", "refusals", "preempted", "tokens", "tokens/s", "service/s", "fair"})
    head.emplace_back(each);
  Table table(std::move(head));
  const std::size_t first_tenant = 1 + kServiceClasses;
  for (std::size_t i = 0; i < run.groups().size(); ++i) {
    const Group& group = run.groups()[i];
    if (group.requests == 0) continue;
    std::vector<std::string> row = {group.name, std::to_string(group.requests)};
    for (const std::uint64_t count : group.outcomes) row.push_back(std::to_string(count));
    for (const std::uint64_t count : {group.good, group.refusals, group.preemptions, group.tokens}) {
      row.push_back(std::to_string(count));
    }
    row.push_back(fixed(per_second(group.tokens, run)));
    row.push_back(i >= first_tenant ? fixed(run.contention.rate(i - first_tenant)) : std::string());
    row.push_back(i >= 1 && i < first_tenant ? fixed(run.contention.jain(i - 1), 3) : std::string());
    table.row(std::move(row));
  }
  table.append_to(out);
}

void append_latencies(std::string& out, const Statistics& run) {
  std::vector<std::string> head = {"milliseconds"};
  for (const Latency& latency : kLatencies) {
    for (const auto& [word, unused] : kShares) head.push_back(std::string(latency.name) + ' ' + word);
    head.emplace_back("max");
  }
  Table table(std::move(head));
  for (const Group& group : run.groups()) {
    if (group.requests == 0) continue;
    std::vector<std::string> row = {group.name};
    for (const Latency& latency : kLatencies) {
      const Percentiles& values = group.*latency.values;
      for (const auto& [unused, at] : kShares) row.push_back(fixed(values.at(at)));
      row.push_back(fixed(values.largest()));
    }
    table.row(std::move(row));
  }
  table.append_to(out);
}

// Each policy a column.
void append_comparison(std::string& out, const std::vector<RunReport>& runs) {
  std::vector<std::string> head = {"policy"};
  for (const RunReport& run : runs) head.push_back(run.policy);
  Table table(std::move(head));
  const auto row = [&](const std::string& title, const std::function<std::string(const Statistics&)>& cell) {
    std::vector<std::string> cells = {title};
    for (const RunReport& run : runs) cells.push_back(cell(*run.statistics));
    table.row(std::move(cells));
  };
  for (const Figure& figure : kFigures) {
    row(figure.name, [&figure](const Statistics& run) { return fixed(figure.read(run), figure.digits); });
  }
  for (std::size_t i = 0; i <= kServiceClasses && runs.size() > 1; ++i) {
    if (runs.front().statistics->groups()[i].requests == 0) continue;
    const std::string& who = runs.front().statistics->groups()[i].name;
    row(who + " good", [i](const Statistics& run) { return std::to_string(run.groups()[i].good); });
    for (const Latency& latency : kLatencies) {
      for (const auto& [word, at] : kShares) {
        row(who + ' ' + latency.name + ' ' + word + " ms",
            [&, at = at](const Statistics& run) { return fixed((run.groups()[i].*latency.values).at(at)); });
      }
    }
  }
  table.append_to(out);
}

void append_group(JsonWriter& json, const Statistics& run, std::size_t index) {
  const Group& group = run.groups()[index];
  json.begin_object();
  json.field("name", group.name);
  json.field("requests", group.requests);
  for (std::size_t i = 0; i < kOutcomes; ++i) json.field(name(static_cast<Outcome>(i)), group.outcomes[i]);
  json.field("good", group.good);
  json.field("refusals", group.refusals);
  json.field("preemptions", group.preemptions);
  json.field("prompt_tokens", group.prompt_tokens);
  json.field("tokens", group.tokens);
  json.field("tokens_per_s", per_second(group.tokens, run));
  if (index >= 1 && index <= kServiceClasses) json.field("fairness", run.contention.jain(index - 1));
  if (index > kServiceClasses) json.field("service_per_s", run.contention.rate(index - 1 - kServiceClasses));
  for (const Latency& latency : kLatencies) {
    const Percentiles& values = group.*latency.values;
    json.begin_object(std::string(latency.name) + "_ms");
    for (const auto& [word, at] : kShares) json.field(word, values.at(at));
    json.field("max", values.largest());
    json.field("mean", values.mean());
    json.end_object();
  }
  json.end_object();
}

}  // namespace

std::string report_text(const std::vector<RunReport>& runs) {
  std::string out;
  for (const RunReport& run : runs) {
    const Statistics& statistics = *run.statistics;
    out += "policy " + run.policy + ", seed " + std::to_string(run.seed) + ", events " + hex(statistics.event_hash()) +
           ", faults " + std::to_string(run.faults->count()) + '\n';
    for (const std::string& line : run.faults->lines()) out += "  " + line + '\n';
    out += '\n';
    append_counts(out, statistics);
    append_latencies(out, statistics);
  }
  append_comparison(out, runs);
  return out;
}

std::string report_json(const std::vector<RunReport>& runs) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.begin_array("runs");
  for (const RunReport& run : runs) {
    const Statistics& statistics = *run.statistics;
    json.begin_object();
    json.field("policy", run.policy);
    json.field("seed", run.seed);
    json.field("events", hex(statistics.event_hash()));
    json.begin_array("faults");
    for (const std::string& line : run.faults->lines()) json.string(line);
    json.end_array();
    for (const Figure& figure : kFigures) json.field(figure.name, figure.read(statistics));
    json.begin_array("groups");
    for (std::size_t i = 0; i < statistics.groups().size(); ++i) {
      if (statistics.groups()[i].requests > 0) append_group(json, statistics, i);
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace chasqui
