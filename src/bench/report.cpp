#include "bench/report.h"

#include <array>
#include <charconv>

#include "base/json_writer.h"

namespace chasqui::bench {
namespace {

std::string fixed(double value, int decimals) {
  std::array<char, 400> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  return {buffer.data(), end.ptr};
}

// Three digits or so: 0.42, 4.21, 42.1, 421.
std::string short_number(double value) { return fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0); }

std::string right(std::string text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

double per_s(std::int64_t count, double wall_s) { return wall_s > 0 ? static_cast<double>(count) / wall_s : 0; }

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void append_samples(std::string& out, const char* name, const Samples& samples) {
  if (samples.count() == 0) return;
  std::string line = name;
  line.resize(12, ' ');
  for (const double percent : {50.0, 95.0, 99.0, 100.0}) line += right(short_number(samples.percentile(percent)), 10);
  out += line + "\n";
}

// Pairs such as `503: 4` behind a name.
std::string refusals_text(const Tally& tally) {
  std::string text;
  for (const auto& [status, counts] : tally.refusals) {
    text += "  answers " + std::to_string(status) + ": " + std::to_string(counts.with_delay + counts.without_delay) +
            " (" + std::to_string(counts.without_delay) + " without a usable Retry-After)\n";
  }
  if (tally.retried > 0) {
    text += "  came again: " + std::to_string(tally.retried) +
            ", of which got in: " + std::to_string(tally.retried_ok) + "\n";
  }
  return text;
}

void append_group(std::string& out, const std::string& name, const Tally& tally, bool has_goodput) {
  const double wall = tally.wall_s();
  out += name + "\n  requests " + std::to_string(tally.requests) + ", ok " + std::to_string(tally.ok) + ", refused " +
         std::to_string(tally.refused) + ", abandoned " + std::to_string(tally.abandoned) + ", errors " +
         std::to_string(tally.errors) + ", in " + fixed(wall, 2) + " s\n";
  out += refusals_text(tally);
  for (const auto& [kind, count] : tally.error_kinds) out += "  " + kind + ": " + std::to_string(count) + "\n";
  out += "  " + fixed(per_s(tally.tokens, wall), 1) + " tokens/s, " + fixed(per_s(tally.ok, wall), 2) + " requests/s";
  if (has_goodput) {
    out += ", goodput " + fixed(per_s(tally.good, wall), 2) + " requests/s (" +
           fixed(100 * share(tally.good, tally.requests), 1) + " %)";
  }
  out += "\n";
  if (tally.cached_tokens > 0) {
    out += "  " + fixed(100 * share(tally.cached_tokens, tally.prompt_tokens), 1) +
           " % of the prompts came from a cache\n";
  }
  if (tally.counts_differ > 0) {
    out += "  in " + std::to_string(tally.counts_differ) + " answers usage says another number of tokens (" +
           std::to_string(tally.streamed_tokens) + ") than had text (" + std::to_string(tally.chunks) +
           "): ITL is of the latter\n";
  }
  if (tally.ok == 0) return;
  out += "  ms               p50       p95       p99       max\n";
  append_samples(out, "  TTFT", tally.ttft);
  append_samples(out, "  ITL", tally.itl);
  append_samples(out, "  TPOT", tally.tpot);
  append_samples(out, "  E2E", tally.e2e);
}

void write_samples(JsonWriter& w, const char* name, const Samples& samples) {
  w.begin_object(name);
  w.field("count", samples.count());
  w.field("mean", samples.mean());
  w.field("p50", samples.percentile(50));
  w.field("p95", samples.percentile(95));
  w.field("p99", samples.percentile(99));
  w.field("max", samples.most());
  w.end_object();
}

void write_refusals(JsonWriter& w, const Tally& tally) {
  w.begin_object("refusals");
  for (const auto& [status, counts] : tally.refusals) {
    w.begin_object(std::to_string(status));
    w.field("with_retry_after", counts.with_delay);
    w.field("without_retry_after", counts.without_delay);
    w.end_object();
  }
  w.end_object();
  w.field("retried", tally.retried);
  w.field("retried_ok", tally.retried_ok);
}

void write_tally(JsonWriter& w, const std::string& name, const Tally& tally, bool has_goodput) {
  const double wall = tally.wall_s();
  w.begin_object();
  w.field("name", name);
  w.field("requests", tally.requests);
  w.field("ok", tally.ok);
  w.field("refused", tally.refused);
  w.field("abandoned", tally.abandoned);
  w.field("errors", tally.errors);
  w.begin_object("error_kinds");
  for (const auto& [kind, count] : tally.error_kinds) w.field(kind, count);
  w.end_object();
  write_refusals(w, tally);
  w.field("wall_s", wall);
  w.field("output_tokens", tally.tokens);
  w.field("streamed_tokens", tally.streamed_tokens);
  w.field("streamed_chunks", tally.chunks);
  w.field("counts_differ", tally.counts_differ);
  w.field("prompt_tokens", tally.prompt_tokens);
  w.field("cached_tokens", tally.cached_tokens);
  w.field("tokens_per_s", per_s(tally.tokens, wall));
  w.field("requests_per_s", per_s(tally.ok, wall));
  if (has_goodput) {
    w.begin_object("goodput");
    w.field("requests_per_s", per_s(tally.good, wall));
    w.field("share", share(tally.good, tally.requests));
    w.end_object();
  }
  write_samples(w, "ttft_ms", tally.ttft);
  write_samples(w, "itl_ms", tally.itl);
  write_samples(w, "tpot_ms", tally.tpot);
  write_samples(w, "e2e_ms", tally.e2e);
  write_samples(w, "late_ms", tally.late);
  w.end_object();
}

// Without tokens there is nothing to divide by.
double cpu_per_million(const RunReport& report) {
  return report.total.chunks > 0 ? report.own_cpu_s * 1e6 / static_cast<double>(report.total.chunks) : 0;
}

std::string megabytes(std::int64_t bytes) { return fixed(static_cast<double>(bytes) / 1e6, 1) + " MB"; }

}  // namespace

std::string report_text(const RunReport& report) {
  std::string out;
  if (report.interrupted) out += "interrupted: what was finished by then\n";
  for (const GroupReport& group : report.groups) append_group(out, group.name, group.tally, report.has_goodput);
  if (report.groups.size() > 1) append_group(out, "total", report.total, report.has_goodput);
  if (report.health.count() + static_cast<std::size_t>(report.health_errors) > 0) {
    out += "health probes " + std::to_string(report.health.count()) + ", errors " +
           std::to_string(report.health_errors) + "\n";
    append_samples(out, "  ms", report.health);
  }
  if (report.server) {
    out += "server: " + fixed(report.server->cpu_s, 2) + " CPU s, at most " + megabytes(report.server->rss_most_bytes) +
           " and " + std::to_string(report.server->threads_most) + " threads\n";
  }
  out += "bench: " + fixed(report.own_cpu_s, 3) + " CPU s";
  if (report.total.chunks > 0) out += ", " + fixed(cpu_per_million(report), 1) + " for a million tokens";
  return out + ", requests sent up to " + short_number(report.total.late.most()) + " ms late\n";
}

std::string report_json(const RunReport& report) {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  w.field("seed", report.seed);
  w.field("interrupted", report.interrupted);
  w.begin_array("groups");
  for (const GroupReport& group : report.groups) write_tally(w, group.name, group.tally, report.has_goodput);
  w.end_array();
  w.key("total");
  write_tally(w, "total", report.total, report.has_goodput);
  if (report.health.count() + static_cast<std::size_t>(report.health_errors) > 0) {
    w.begin_object("health");
    w.field("errors", report.health_errors);
    write_samples(w, "ms", report.health);
    w.end_object();
  }
  if (report.server) {
    w.begin_object("server");
    w.field("cpu_s", report.server->cpu_s);
    w.field("rss_most_bytes", report.server->rss_most_bytes);
    w.field("rss_peak_bytes", report.server->rss_peak_bytes);
    w.field("threads_most", report.server->threads_most);
    w.end_object();
  }
  w.begin_object("bench");
  w.field("cpu_s", report.own_cpu_s);
  w.field("cpu_s_per_million_tokens", cpu_per_million(report));
  w.end_object();
  w.end_object();
  return out + "\n";
}

}  // namespace chasqui::bench
