#include "cli/top_view.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <iterator>

#include "cli/machine.h"
#include "cli/top_lists.h"

namespace chasqui::cli {
namespace {

constexpr const char* kTokens = "chasqui_generation_tokens_total";
constexpr const char* kFirst = "chasqui_time_to_first_token_seconds";
constexpr const char* kNext = "chasqui_inter_token_seconds";
constexpr std::size_t kModelsShown = 5;  // in the overview
constexpr std::size_t kTenantsShown = 5;

[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...) {
  char text[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return text;
}

std::string milliseconds_in_words(std::optional<double> seconds) {
  if (!seconds) return "–";
  const double ms = *seconds * 1000;
  return ms < 10 ? formatted("%.1f ms", ms) : formatted("%.0f ms", ms);
}

std::string bytes(double value) { return bytes_in_words(static_cast<std::uint64_t>(std::max(value, 0.0))); }

}  // namespace

std::string sparkline(const std::deque<std::optional<double>>& values, std::size_t width) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t begin = values.size() > width ? values.size() - width : 0;
  double most = 0;
  for (std::size_t i = begin; i < values.size(); ++i) most = std::max(most, values[i].value_or(0));
  std::string out;
  for (std::size_t i = begin; i < values.size(); ++i) {
    if (!values[i]) {
      out += ' ';
      continue;
    }
    const double share = most > 0 ? *values[i] / most : 0;
    out += kBars[std::clamp(static_cast<int>(std::ceil(share * 8)) - 1, 0, 7)];
  }
  return out;
}

void TopView::remember(History& history, std::optional<double> value) {
  history.push_back(value);
  if (history.size() > kHistory) history.pop_front();
}

void TopView::add(MetricsSample sample, double seconds) {
  before_ = std::move(now_);
  now_ = std::move(sample);
  seconds_ = std::max(seconds, 1e-3);
  if (!before_) return;
  remember(tokens_, rate(kTokens));
  remember(first_, quantile_between(*before_, *now_, kFirst, 0.5));
  remember(next_, quantile_between(*before_, *now_, kNext, 0.5));
}

void TopView::show(std::optional<SequenceSample> sequences, std::string why_not, double seconds) {
  sequences_before_ = std::move(sequences_);
  sequences_ = std::move(sequences);
  why_no_sequences_ = std::move(why_not);
  sequence_seconds_ = std::max(seconds, 1e-3);
}

// As far as there are rows.
void TopView::append_lists(std::vector<std::string>& lines, std::size_t rows) const {
  const auto left = [&] { return rows > lines.size() + 2 ? rows - lines.size() - 2 : 0; };  // after a head
  if (!sequences_) {
    if (!why_no_sequences_.empty()) lines.push_back("sequences  not shown: " + harmless(why_no_sequences_));
    return;
  }
  const auto append = [&](std::vector<std::string> list) {
    lines.emplace_back();
    std::ranges::move(list, std::back_inserter(lines));
  };
  const bool overview = focus_ == TopFocus::overview;
  const auto shows = [&](TopFocus list) { return (overview || focus_ == list) && left() > 0; };
  // One model is in the title.
  if (shows(TopFocus::models) && models_.size() > (overview ? 1 : 0)) {
    const std::size_t most = overview ? std::min(left(), kModelsShown) : left();
    append(model_lines(models_, *sequences_, sequences_before_, sequence_seconds_, most));
  }
  if (shows(TopFocus::tenants) && !sequences_->tenants.empty()) {
    const std::size_t most = overview ? std::min(left(), kTenantsShown) : left();
    append(tenant_lines(*sequences_, sequences_before_, sequence_seconds_, most));
  }
  if (shows(TopFocus::sequences) && !sequences_->sequences.empty()) {
    append(sequence_lines(*sequences_, sequences_before_, sequence_seconds_, left()));
  }
}

double TopView::rate(std::string_view name, const Labels& wanted) const {
  return before_ ? grown(*before_, *now_, name, wanted) / seconds_ : 0;
}

std::string TopView::rates() const {
  return formatted("running %.0f   slots %.0f of %.0f   cells %.0f of %.0f   sessions %.0f   connections %.0f",
               now_->sum("chasqui_requests_running"), now_->sum("chasqui_kv_slots_used"), now_->sum("chasqui_kv_slots"),
               now_->sum("chasqui_kv_cells_used"), now_->sum("chasqui_kv_cells"), now_->sum("chasqui_sessions"),
               now_->sum("chasqui_http_connections_open"));
}

std::string TopView::rows() const {
  std::string out = "steps  ";
  for (const char* kind : {"decode", "prefill"}) {
    const Labels wanted{{"kind", kind}};
    const double steps = rate("chasqui_steps_total", wanted);
    const double rows = rate("chasqui_step_rows_sum", wanted);
    const double took = rate("chasqui_step_seconds_sum", wanted);
    out += formatted("  %s %.1f/s of %.1f rows, %s each", kind, steps, steps > 0 ? rows / steps : 0,
                 steps > 0 ? milliseconds_in_words(took / steps).c_str() : "–");
  }
  return out;
}

std::string TopView::queue() const {
  std::string out = "queue  ";
  for (const std::string& of : now_->values_of("chasqui_requests_waiting", "class")) {
    out += formatted("  %s %.0f", harmless(of).c_str(), now_->sum("chasqui_requests_waiting", {{"class", of}}));
  }
  return out + formatted("   refused %.1f/s   put aside %.1f/s", rate("chasqui_requests_refused_total"),
                     rate("chasqui_preemptions_total"));
}

std::string TopView::tenants() const {
  return formatted("tenants  %.0f with requests, the largest has %.0f; %.0f requests in flight",
               now_->sum("chasqui_tenants_in_flight"), now_->sum("chasqui_tenant_requests_in_flight_max"),
               now_->sum("chasqui_requests_in_flight"));
}

std::vector<std::string> TopView::workers() const {
  std::vector<std::string> out;
  for (const std::string& worker : now_->values_of("chasqui_kv_slots_used", "worker")) {
    const Labels wanted{{"worker", worker}};
    out.push_back(formatted("  worker %s   %.1f steps/s   slots %.0f of %.0f   cells %.0f of %.0f   threads %.0f",
                        harmless(worker).c_str(), rate("chasqui_steps_total", wanted),
                        now_->sum("chasqui_kv_slots_used", wanted), now_->sum("chasqui_kv_slots", wanted),
                        now_->sum("chasqui_kv_cells_used", wanted), now_->sum("chasqui_kv_cells", wanted),
                        now_->sum("chasqui_compute_threads", wanted)));
  }
  return out;
}

std::vector<std::string> TopView::caches() const {
  const double read = rate("chasqui_prompt_tokens_total");
  const double cached = rate("chasqui_prompt_tokens_cached_total");
  std::vector<std::string> out{formatted(
        "cache    memory %.0f snapshots, %s   prompts %.0f tokens/s, %.0f of them cached",
                                     now_->sum("chasqui_snapshots"), bytes(now_->sum("chasqui_snapshot_bytes")).c_str(),
                                     read, cached)};
  if (now_->sum("chasqui_disk_snapshots") > 0 || now_->sum("chasqui_disk_written_bytes_total") > 0) {
    out.push_back(formatted("         disk %.0f snapshots, %s   written %s/s   read %s/s",
                        now_->sum("chasqui_disk_snapshots"), bytes(now_->sum("chasqui_disk_bytes")).c_str(),
                        bytes(rate("chasqui_disk_written_bytes_total")).c_str(),
                        bytes(rate("chasqui_disk_read_bytes_total")).c_str()));
  }
  return out;
}

std::vector<std::string> TopView::lines(Size size, const Paint& paint) const {
  std::vector<std::string> plain{title_.empty() ? "chasqui top" : harmless(title_)};
  if (!fault_.empty()) plain.push_back("! " + harmless(fault_));
  if (now_) {
    plain.push_back(rates());
    const auto width = static_cast<std::size_t>(std::max(size.columns - 34, 0));
    const auto last = [](const History& history) { return history.empty() ? std::nullopt : history.back(); };
    plain.push_back(formatted("tokens/s %10.1f   ", last(tokens_).value_or(0)) + sparkline(tokens_, width));
    plain.push_back("TTFT p50 " + formatted("%10s   ", milliseconds_in_words(last(first_)).c_str()) +
                    sparkline(first_, width));
    plain.push_back("ITL p50  " + formatted("%10s   ", milliseconds_in_words(last(next_)).c_str()) +
                    sparkline(next_, width));
    plain.push_back(rows());
    plain.push_back(queue());
    plain.push_back(tenants());
    for (std::string& line : caches()) plain.push_back(std::move(line));
    for (std::string& line : workers()) plain.push_back(std::move(line));
    if (focus_ != TopFocus::overview) plain.resize(std::min<std::size_t>(plain.size(), fault_.empty() ? 2 : 3));
    append_lists(plain, static_cast<std::size_t>(std::max(size.rows, 0)));
  }
  std::vector<std::string> out;
  for (std::size_t i = 0; i < plain.size() && static_cast<int>(out.size()) < size.rows; ++i) {
    std::string line = cut(plain[i], static_cast<std::size_t>(std::max(size.columns, 0)));
    if (i == 0) line = std::string(paint.bold) + line + std::string(paint.off);
    if (line.starts_with('!')) line = std::string(paint.red) + line + std::string(paint.off);
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace chasqui::cli
