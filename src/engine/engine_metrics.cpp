#include "engine/engine_metrics.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/json_writer.h"

namespace chasqui {
namespace {

std::string class_label(ServiceClass of) { return metric_label("class", name(of)); }

// The quoting of JSON and of Prometheus is the same.
std::string quoted(const std::string& text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

constexpr const char* kAdapterSteps = "chasqui_adapter_steps_total";
constexpr const char* kAdapterStepsHelp = "Batches computed, by the adapter that was applied.";

// Why a file is not used (cache/snapshot_file.h).
constexpr std::pair<ErrorCode, const char*> kDiskRefusals[] = {{ErrorCode::not_found, "reason=\"missing\""},
                                                               {ErrorCode::invalid_request, "reason=\"damaged\""},
                                                               {ErrorCode::conflict, "reason=\"foreign\""},
                                                               {ErrorCode::too_large, "reason=\"too_large\""},
                                                               {ErrorCode::unavailable, "reason=\"unreadable\""}};

}  // namespace

EngineMetrics::EngineMetrics() {
  adapter_steps.front().name = "none";
  of_adapters.add(&adapter_steps.front().steps, adapter_row("none"));
}
EngineMetrics::~EngineMetrics() = default;

MetricRow EngineMetrics::waiting_row(std::size_t service_class) {
  constexpr const char* kWaiting = "Requests that wait for a slot.";
  return MetricRow("chasqui_requests_waiting", "Requests that wait for a slot, by class.",
                   class_label(static_cast<ServiceClass>(service_class)))
      .also("vllm:num_requests_waiting", kWaiting)
      .also("llamacpp:requests_deferred", kWaiting);
}

MetricRow EngineMetrics::finished_row(std::size_t reason) {
  constexpr const char* kEnded = "Requests that ended, by reason.";
  constexpr const char* kVllm[] = {"stop", "length", "abort", "length", "error"};
  return MetricRow("chasqui_requests_finished_total", kEnded,
                   metric_label("reason", name(static_cast<FinishReason>(reason))))
      .also("vllm:request_success_total", kEnded, metric_label("finished_reason", kVllm[reason]));
}

MetricRow EngineMetrics::accepted_row(std::size_t position) {
  return {"chasqui_spec_accepted_tokens_at_total",
          "Draft tokens that were accepted, by position in the step: 0 is the first, 5 all from there on.",
          metric_label("position", std::to_string(position))};
}

MetricRow EngineMetrics::disk_refused_row(std::size_t refusal) {
  return {"chasqui_disk_refused_total", "Files that a request waited for and that were not used, by reason.",
          kDiskRefusals[refusal].second};
}

MetricRow DispatchMetrics::placement_row(std::size_t reason) {
  constexpr const char* kReasons[] = {"pin", "prefix", "load"};
  return {"chasqui_placements_total", "Requests given to a worker, by what decided which.",
          metric_label("reason", kReasons[reason])};
}

MetricRow EngineMetrics::adapter_row(const std::string& name) {
  return {kAdapterSteps, kAdapterStepsHelp, "adapter=" + quoted(name)};
}

void EngineMetrics::add_adapter_row(MetricsPage& page, const AdapterSteps& steps) {
  page.add(kAdapterSteps, kAdapterStepsHelp, steps.steps, "adapter=" + quoted(steps.name));
}

EngineMetrics::Waits::Waits(MetricSet& set, ServiceClass of)
    : queue_seconds(set,
                    MetricRow("chasqui_request_queue_seconds", "Arrival to the first step, by class.", class_label(of))
                        .also("vllm:request_queue_time_seconds", "Arrival to the first step.")
                        .buckets(request_buckets()),
                    request_bounds()),
      time_to_first_token_seconds(
          set,
          MetricRow("chasqui_time_to_first_token_seconds", "Arrival to the first token, by class.", class_label(of))
              .also("vllm:time_to_first_token_seconds", "Arrival to the first token.")
              .buckets({.001, .005, .02, .05, .1, .2, .5, 1, 2.5, 5, 10, 20, 80}),
          first_token_bounds()),
      inter_token_seconds(
          set,
          MetricRow("chasqui_inter_token_seconds", "Time between two tokens of a request, by class.", class_label(of))
              .also("vllm:inter_token_latency_seconds", "Time between two tokens of a request.")
              .buckets(gap_buckets()),
          inter_token_bounds()),
      forecast_late_seconds(set,
                            {"chasqui_forecast_error_seconds",
                             "By how much the first token missed the forecast of the request's arrival, by class.",
                             "token=\"late\"," + class_label(of)},
                            forecast_bounds()),
      forecast_early_seconds(set, {"chasqui_forecast_error_seconds", {}, "token=\"early\"," + class_label(of)},
                             forecast_bounds()) {}

std::vector<double> EngineMetrics::first_token_bounds() {
  return {.001, .002, .005, .01, .02, .04, .05, .06, .08, .1,  .2,  .25, .5,
          .75,  1,    2.5,  5,   7.5, 10,  20,  40,  80,  160, 640, 2560};
}

std::vector<double> EngineMetrics::forecast_bounds() { return {.01, .05, .2, .5, 1, 2, 5, 10, 30, 120}; }

std::vector<double> EngineMetrics::inter_token_bounds() {
  return {.001, .002, .004, .006, .008, .01, .025, .05, .075, .1, .15, .2,
          .3,   .4,   .5,   .75,  1,    2.5, 5,    7.5, 10,   20, 40,  80};
}

std::vector<double> EngineMetrics::request_bounds() {
  return {.001, .005, .01, .02, .05, .1, .2, .3, .5,  .8,  1,   1.5, 2,    2.5,
          5,    10,   15,  20,  30,  40, 50, 60, 120, 240, 480, 960, 1920, 7680};
}

std::vector<double> EngineMetrics::token_bounds() {
  return {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
}

std::vector<double> EngineMetrics::iteration_bounds() {
  return {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
}

void EngineMetrics::count_finished(const Event& event) {
  const Usage& usage = event.usage;
  requests_finished[static_cast<std::size_t>(event.reason)].add();
  if (event.reason == FinishReason::error && event.error.code == ErrorCode::overloaded) queue_timeouts.add();
  waits[static_cast<std::size_t>(event.service_class)].queue_seconds.observe(to_seconds(usage.queue));
  request_seconds.observe(to_seconds(usage.queue + usage.prefill + usage.decode));
  request_cpu_seconds.observe(to_seconds(usage.cpu));
  const TokenCount generated = usage.completion - usage.begun;
  if (generated == 0) return;
  request_prompt_tokens.observe(usage.prompt);
  request_generation_tokens.observe(generated);
  longest_sequence.set(std::max<std::int64_t>(longest_sequence.value(), usage.prompt + usage.completion));
  prefill_seconds.observe(to_seconds(usage.prefill));
  decode_seconds.observe(to_seconds(usage.decode));
  waits[static_cast<std::size_t>(event.service_class)].time_to_first_token_seconds.observe(
      to_seconds(usage.queue + usage.prefill));
  ttft_ms.observe(to_milliseconds(usage.queue + usage.prefill));
  if (generated > 1) {
    time_per_output_token_seconds.observe(to_seconds(usage.decode) / (generated - 1));
  }
}

// Most tokens of a step have the same distance from the one before, and are counted together.
void EngineMetrics::count_tokens(const std::vector<Event>& events) {
  const Event* first = nullptr;
  std::uint64_t times = 0;
  const auto count = [&] {
    if (first == nullptr) return;
    const Duration since_last = first->since_last;
    waits[static_cast<std::size_t>(first->service_class)].inter_token_seconds.observe(to_seconds(since_last), times);
    inter_token_ms.observe(to_milliseconds(since_last), times);
  };
  for (const Event& event : events) {
    if (event.first) {
      Waits& its = waits[static_cast<std::size_t>(event.service_class)];
      const bool late = event.late > Duration::zero();
      (late ? its.forecast_late_seconds : its.forecast_early_seconds).observe(std::abs(to_seconds(event.late)));
    }
    if (event.kind != Event::Kind::text || event.since_last == Duration::zero()) continue;
    if (first == nullptr || event.since_last != first->since_last || event.service_class != first->service_class) {
      count();
      first = &event;
      times = 0;
    }
    ++times;
  }
  count();
}

void EngineMetrics::count_step(const Batch& batch, Duration took) {
  const bool decodes = batch.kind == Batch::Kind::decode;
  const auto count = static_cast<double>(batch.rows.size()) - batch.padding_rows();
  passes.add(static_cast<std::uint64_t>(batch.passes));
  if (batch.stretch > Duration::zero()) stretched_steps.add();
  (decodes ? decode_steps : prefill_steps).add();
  (decodes ? decode_rows : prefill_rows).observe(count);
  (decodes ? decode_step_seconds : prefill_step_seconds).observe(to_seconds(took));
  step_tokens.observe(count);
  decode_ms.observe(to_milliseconds(took));
  batch_size.observe(count);
}

void EngineMetrics::count_encoding(bool fresh, Duration took) {
  (fresh ? media_encoded : media_reused).add();
  if (fresh) media_encode_seconds.observe(to_seconds(took));
}

void EngineMetrics::follow_masks(const GrammarMaskCost& cost) {
  follow(masks_found, cost.found);
  follow(masks_computed, cost.computed);
  follow(masks_put_off, cost.put_off);
  mask_seconds.set(to_seconds(cost.computing));
}

void EngineMetrics::follow_speculation(const Speculation& speculation) {
  const Speculation::Stats& stats = speculation.stats();
  follow(draft_rows, stats.draft_rows);
  if (spec_steps.value() == stats.steps) return;
  follow(spec_steps, stats.steps);
  follow(draft_tokens, stats.checked);
  follow(accepted_tokens, stats.accepted);
  constexpr std::size_t kLast = decltype(accepted_tokens_at)::size() - 1;
  for (std::size_t i = 0; i < kLast; ++i) follow(accepted_tokens_at[i], stats.accepted_at[i]);
  follow(accepted_tokens_at[kLast], std::accumulate(stats.accepted_at.begin() + kLast, stats.accepted_at.end(), 0ull));
}

void EngineMetrics::follow_reuse(const Reuse& reuse) {
  const PrefixCache::Stats stats = reuse.cache_stats();
  follow(cached_tokens, stats.tokens_matched);
  follow(prefix_hits, stats.hits);
  follow(prefix_misses, stats.misses);
  follow(prefix_waits, reuse.waits_begun());
  const CachedSlots::Stats& slots = reuse.slots().stats;
  follow(cached_slots_taken, slots.taken);
  follow(cached_slots_copied, slots.copied);
  follow(cached_slots_copied_out, slots.copied_out);
  follow(cached_slots_dropped, slots.dropped);
  follow(snapshots_kept, stats.insertions);
  follow(snapshots_evicted, stats.evictions);
  follow(snapshots_refused, stats.refused);
  snapshots.set(static_cast<std::int64_t>(stats.entries));
  snapshot_bytes.set(static_cast<std::int64_t>(stats.bytes));
  prefix_index_bytes.set(static_cast<std::int64_t>(stats.index_bytes));
  if (reuse.disk() == nullptr) return;
  const DiskTier::Stats disk = reuse.disk()->stats();
  snapshot_files.set(static_cast<std::int64_t>(disk.store.files - disk.store.foreign));
  foreign_files.set(static_cast<std::int64_t>(disk.store.foreign));
  snapshot_file_bytes.set(static_cast<std::int64_t>(disk.store.bytes));
  disk_queue.set(static_cast<std::int64_t>(disk.queue));
  disk_queue_bytes.set(static_cast<std::int64_t>(disk.queue_bytes));
  follow(disk_evictions, disk.store.evictions);
  follow(disk_dropped, disk.dropped);
  follow(disk_not_taken, disk.refused);
  follow(disk_late, disk.late);
}

void EngineMetrics::count_disk(const DiskOutcome& outcome) {
  const bool is_of_folder = outcome.kind == DiskOrder::Kind::read || outcome.kind == DiskOrder::Kind::write;
  if (!is_of_folder || is_shared_file(outcome.file)) return;
  const bool reads = outcome.kind == DiskOrder::Kind::read;
  (reads ? disk_read_seconds : disk_write_seconds).observe(to_seconds(outcome.took));
  if (!outcome.error) {
    (reads ? disk_bytes_read : disk_bytes_written).add(outcome.kv->size());
    return;
  }
  if (!reads) return disk_write_failures.add();
  for (std::size_t i = 0; i < std::size(kDiskRefusals); ++i) {
    if (kDiskRefusals[i].first == outcome.error->code) disk_refused[i].add();
  }
}

void EngineMetrics::name_adapters(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) name_adapter(i, names[i]);
}

void EngineMetrics::name_adapter(std::size_t place, const std::string& name) {
  AdapterSteps& steps = adapter_steps.at(place + 1);
  follow(steps.steps, 0);
  for (Gauge* const wish :
       {&steps.by_name.running, &steps.by_name.waiting, &steps.in_full.running, &steps.in_full.waiting}) {
    wish->set(0);
  }
  if (steps.name.empty() && !name.empty()) named_adapters_.fetch_add(1, std::memory_order_relaxed);
  if (!steps.name.empty() && name.empty()) named_adapters_.fetch_sub(1, std::memory_order_relaxed);
  steps.name = name;
}

void EngineMetrics::count_adapters(const AdapterSet* set) {
  if (set == nullptr || set->uses.empty()) return adapter_steps.front().steps.add();
  if (set->uses.size() > 1) return steps_of_several.add();
  adapter_steps.at(static_cast<std::size_t>(set->uses.front().adapter) + 1).steps.add();
}

void EngineMetrics::follow_adapters(const AdapterTurns& turns) {
  follow(adapter_switches, turns.switches());
  adapter_switch_seconds.set(to_seconds(turns.switch_time()));
}

void EngineMetrics::show_adapters(const RunningSequences& running, const WaitQueue::Line& waiting) {
  if (named_adapters() == 0) return;
  struct Wishes {
    std::int64_t by_name = 0, in_full = 0;
  };
  const auto show = [this](const auto& sequences, Gauge AdapterWish::*shown) {
    std::array<Wishes, kAdapters + 1> wishes{};
    for (const auto& sequence : sequences) {
      const AdapterSet* const set = sequence->request().adapters.get();
      if (set == nullptr) continue;
      for (const AdapterUse& use : set->uses) {
        Wishes& of_it = wishes.at(static_cast<std::size_t>(use.adapter) + 1);
        ++(set->named_in_full ? of_it.in_full : of_it.by_name);
      }
    }
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      (adapter_steps[i].by_name.*shown).set(wishes[i].by_name);
      (adapter_steps[i].in_full.*shown).set(wishes[i].in_full);
    }
  };
  show(running, &AdapterWish::running);
  show(waiting, &AdapterWish::waiting);
}

void EngineMetrics::add_shared_to(MetricsPage& page) const {
  all_workers.add_to(page);
  if (named_adapters() > 0) of_adapters.add_to(page);
}

void EngineMetrics::add_others_to(MetricsPage& page, std::string_view prefix, const std::string& labels) const {
  each_worker.add_others_to(page, prefix, labels);
  all_workers.add_others_to(page, prefix, labels);
}

}  // namespace chasqui
