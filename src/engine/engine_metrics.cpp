#include "engine/engine_metrics.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <type_traits>
#include <utility>

#include "base/json_writer.h"

namespace chasqui {
namespace {

std::string class_label(std::size_t service_class) {
  return "class=\"" + std::string(name(static_cast<ServiceClass>(service_class))) + '"';
}

// Why a file is not used (cache/snapshot_file.h).
constexpr std::pair<ErrorCode, const char*> kRefusals[] = {{ErrorCode::not_found, "reason=\"missing\""},
                                                           {ErrorCode::invalid_request, "reason=\"damaged\""},
                                                           {ErrorCode::conflict, "reason=\"foreign\""},
                                                           {ErrorCode::too_large, "reason=\"too_large\""},
                                                           {ErrorCode::unavailable, "reason=\"unreadable\""}};

// Enough for what is rare; the page has a bound.
const std::vector<double> kCoarse = {.001, .005, .02, .1, .5, 2, 10, 60};

}  // namespace

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
  if (usage.completion == 0) return;
  request_prompt_tokens.observe(usage.prompt);
  request_generation_tokens.observe(usage.completion);
  longest_sequence.set(std::max<std::int64_t>(longest_sequence.value(), usage.prompt + usage.completion));
  prefill_seconds.observe(to_seconds(usage.prefill));
  decode_seconds.observe(to_seconds(usage.decode));
  waits[static_cast<std::size_t>(event.service_class)].time_to_first_token_seconds.observe(
      to_seconds(usage.queue + usage.prefill));
  ttft_ms.observe(to_milliseconds(usage.queue + usage.prefill));
  if (usage.completion > 1) {
    time_per_output_token_seconds.observe(to_seconds(usage.decode) / (usage.completion - 1));
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

void EngineMetrics::follow_masks(const GrammarMaskCost& cost) {
  follow(masks_found, cost.found);
  follow(masks_computed, cost.computed);
  mask_seconds.store(to_seconds(cost.computing), std::memory_order_relaxed);
}

void EngineMetrics::follow_speculation(const Speculation& speculation) {
  const Speculation::Stats& stats = speculation.stats();
  follow(draft_rows, stats.draft_rows);
  if (spec_steps.value() == stats.steps) return;
  follow(spec_steps, stats.steps);
  follow(draft_tokens, stats.checked);
  follow(accepted_tokens, stats.accepted);
  constexpr std::size_t kLast = std::extent_v<decltype(accepted_tokens_at)> - 1;
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
}

void EngineMetrics::count_disk(const DiskOutcome& outcome) {
  if (outcome.kind == DiskOrder::Kind::sync) return;
  const bool reads = outcome.kind == DiskOrder::Kind::read;
  (reads ? disk_read_seconds : disk_write_seconds).observe(to_seconds(outcome.took));
  if (!outcome.error) {
    (reads ? disk_bytes_read : disk_bytes_written).add(outcome.kv->size());
    return;
  }
  if (!reads) return disk_write_failures.add();
  for (std::size_t i = 0; i < std::size(kRefusals); ++i) {
    if (kRefusals[i].first == outcome.error->code) disk_refused[i].add();
  }
}

void EngineMetrics::add_disk_to(MetricsPage& page) const {
  page.add("chasqui_disk_snapshots", "Sequences kept in files that this model can use.", snapshot_files);
  page.add("chasqui_disk_snapshots_foreign", "Files of other models or settings.", foreign_files);
  page.add("chasqui_disk_bytes", "Size of all of them.", snapshot_file_bytes);
  page.add("chasqui_disk_queue", "Sequences that wait to be written.", disk_queue);
  page.add("chasqui_disk_queue_bytes", "Host memory that they take beyond the cache.", disk_queue_bytes);
  page.add("chasqui_disk_dropped_total", "Sequences not written because others came faster.", disk_dropped);
  page.add("chasqui_disk_evictions_total", "Files that made room for others.", disk_evictions);
  page.add("chasqui_disk_write_failures_total", "Files that could not be written.", disk_write_failures);
  page.add("chasqui_disk_written_bytes_total", "KV written to files.", disk_bytes_written);
  page.add("chasqui_disk_read_bytes_total", "KV read from files.", disk_bytes_read);
  for (std::size_t i = 0; i < std::size(kRefusals); ++i) {
    page.add("chasqui_disk_refused_total", "Files that a request waited for and that were not used, by reason.",
             disk_refused[i], kRefusals[i].second);
  }
  page.add("chasqui_disk_refused_total", "Files that a request waited for and that were not used, by reason.",
           disk_not_taken, "reason=\"not_taken\"");
  page.add("chasqui_disk_read_seconds", "Time to read and check a file.", disk_read_seconds, {}, kCoarse);
  page.add("chasqui_disk_write_seconds", "Time to write and sync a file.", disk_write_seconds, {}, kCoarse);
}

void EngineMetrics::add_reuse_to(MetricsPage& page) const {
  page.add("chasqui_prompt_tokens_cached_total", "Tokens of prompts that were not computed again.", cached_tokens);
  page.add("chasqui_prefix_cache_queries_total", "Requests that got a slot, by whether a prefix was cached.",
           prefix_hits, "result=\"hit\"");
  page.add("chasqui_prefix_cache_queries_total", "Requests that got a slot, by whether a prefix was cached.",
           prefix_misses, "result=\"miss\"");
  page.add("chasqui_prefix_waits_total", "Requests that waited for another one to compute their prefix.", prefix_waits);
  constexpr const char* kReuses = "Requests that began with what a slot still held, by how.";
  page.add("chasqui_cached_slots_reused_total", kReuses, cached_slots_taken, "how=\"in_place\"");
  page.add("chasqui_cached_slots_reused_total", kReuses, cached_slots_copied, "how=\"copied\"");
  page.add("chasqui_cached_slots_copied_out_total", "Slots of finished requests copied to host memory.",
           cached_slots_copied_out);
  page.add("chasqui_cached_slots_dropped_total", "Slots of finished requests that were given to others.",
           cached_slots_dropped);
  page.add("chasqui_snapshots", "Sequences kept in host memory.", snapshots);
  page.add("chasqui_snapshot_bytes", "Their size.", snapshot_bytes);
  page.add("chasqui_prefix_index_bytes", "Memory to find them by their tokens.", prefix_index_bytes);
  page.add("chasqui_snapshots_kept_total", "Sequences copied to host memory.", snapshots_kept);
  page.add("chasqui_snapshots_evicted_total", "Sequences that made room for others.", snapshots_evicted);
  page.add("chasqui_snapshots_refused_total", "Sequences too large to be kept.", snapshots_refused);
  page.add("chasqui_kv_save_seconds", "Time to copy sequences out in one step.", kv_save_seconds, {}, kCoarse);
  page.add("chasqui_kv_restore_seconds", "Time to bring sequences back in one step.", kv_restore_seconds, {}, kCoarse);
}

void EngineMetrics::name_adapters(const std::vector<std::string>& names) {
  if (names.empty()) return;
  adapter_steps.emplace_back().name = "none";
  for (const std::string& name : names) adapter_steps.emplace_back().name = name;
  adapter_steps.emplace_back().name = "several";
}

void EngineMetrics::count_adapters(const AdapterSet* set) {
  if (adapter_steps.empty()) return;
  if (set == nullptr || set->uses.empty()) return adapter_steps.front().steps.add();
  const auto first = static_cast<std::size_t>(set->uses.front().adapter) + 1;
  (set->uses.size() == 1 ? adapter_steps.at(first) : adapter_steps.back()).steps.add();
}

void EngineMetrics::follow_adapters(const AdapterTurns& turns) {
  follow(adapter_switches, turns.switches());
  adapter_switch_seconds.store(to_seconds(turns.switch_time()), std::memory_order_relaxed);
}

void EngineMetrics::show_adapters(const RunningSequences& running, const WaitQueue::Line& waiting) {
  if (adapter_steps.empty()) return;
  const auto show = [this](const auto& sequences, Gauge AdapterSteps::*shown) {
    for (std::size_t i = 0; i < adapter_steps.size(); ++i) {
      const auto wants = [i](const auto& sequence) {
        const AdapterSet* set = sequence->request().adapters.get();
        return set != nullptr && std::ranges::any_of(set->uses, [i](const AdapterUse& use) {
                 return static_cast<std::size_t>(use.adapter) + 1 == i;
               });
      };
      (adapter_steps[i].*shown).set(std::ranges::count_if(sequences, wants));
    }
  };
  show(running, &AdapterSteps::running);
  show(waiting, &AdapterSteps::waiting);
}

void EngineMetrics::add_adapters_to(MetricsPage& page) const {
  if (adapter_steps.empty()) return;
  for (const AdapterSteps& each : adapter_steps) {
    std::string label = "adapter=";
    append_json_string(label, each.name);  // the quoting of both is the same
    page.add("chasqui_adapter_steps_total", "Batches computed, by the adapter that was applied.", each.steps, label);
  }
  page.add("chasqui_adapter_switches_total", "Steps with other adapters than the one before.", adapter_switches);
  page.add_computed("chasqui_adapter_switch_seconds", "What such a step takes longer, as far as is known.",
                    [this] { return adapter_switch_seconds.load(std::memory_order_relaxed); });
}

void EngineMetrics::add_to(MetricsPage& page) const {
  page.add("chasqui_requests_running", "Requests that hold a slot.", requests_running);
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    page.add("chasqui_requests_waiting", "Requests that wait for a slot, by class.", requests_waiting[c],
             class_label(c));
  }
  for (std::size_t i = 0; i < std::size(requests_finished); ++i) {
    const std::string_view reason = name(static_cast<FinishReason>(i));
    page.add("chasqui_requests_finished_total", "Requests that ended, by reason.", requests_finished[i],
             "reason=\"" + std::string(reason) + '"');
  }
  page.add("chasqui_kv_cells_used", "KV positions that hold something.", kv_cells_used);
  page.add("chasqui_kv_cells", "KV positions of the context.", kv_cells_total);
  page.add("chasqui_kv_slots_used", "Slots that are taken.", kv_slots_used);
  page.add("chasqui_kv_slots_cached", "Slots that hold what a finished request has left.", kv_slots_cached);
  page.add("chasqui_kv_slots", "Slots of the context.", kv_slots_total);
  page.add("chasqui_steps_total", "Batches computed, by kind.", decode_steps, "kind=\"decode\"");
  page.add("chasqui_steps_total", "Batches computed, by kind.", prefill_steps, "kind=\"prefill\"");
  page.add("chasqui_decode_failures_total", "Batches that the model could not compute.", decode_failures);
  page.add("chasqui_worker_stalls_total",
           "Times that a worker stood still in a step, so that its requests were given up.", stalls);
  page.add("chasqui_compute_threads", "Compute threads of the last step.", compute_threads);
  page.add("chasqui_prompt_tokens_total", "Prompt tokens computed.", prompt_tokens);
  page.add("chasqui_generation_tokens_total", "Tokens generated.", generation_tokens);
}

void EngineMetrics::add_shared_to(MetricsPage& page) const {
  page.add("chasqui_queue_timeouts_total", "Requests that waited too long.", queue_timeouts);
  add_reuse_to(page);
  add_adapters_to(page);
  page.add("chasqui_sleeping", "1 while the model is out of memory for want of work.", sleeping);
  page.add("chasqui_wakes_total", "Times that the model was loaded again.", wakes);
  page.add("chasqui_wake_seconds", "Time to load the model again.", wake_seconds, {}, kCoarse);
  add_steps_to(page);
  add_speculation_to(page);
  add_waits_to(page);
  page.add_to_json("ttft_ms", "Arrival to the first token.", ttft_ms);
  page.add_to_json("inter_token_ms", "Time between two tokens of a request.", inter_token_ms);
  page.add_to_json("decode_ms", "Time to compute a batch.", decode_ms);
  page.add_to_json("batch_size", "Rows of a batch.", batch_size);
}

void EngineMetrics::add_steps_to(MetricsPage& page) const {
  page.add("chasqui_steps_aborted_total", "Steps cut short because their only client left, or for an urgent arrival.",
           aborted_steps);
  page.add("chasqui_cancel_steps", "Steps between a client's leaving and its slot being free.", cancel_steps);
  page.add("chasqui_cut_decodes_total", "Steps begun again with fewer threads because something else held a core.",
           cut_decodes);
  constexpr const char* kMasks = "Masks of grammars that answers asked for, kept from before or computed.";
  page.add("chasqui_grammar_masks_total", kMasks, masks_found, "from=\"kept\"");
  page.add("chasqui_grammar_masks_total", kMasks, masks_computed, "from=\"computed\"");
  page.add_computed_counter("chasqui_grammar_mask_seconds_total", "Time that workers computed masks of grammars.",
                            [this] { return mask_seconds.load(std::memory_order_relaxed); });
  page.add("chasqui_preemptions_total", "Requests that lost their slot for a while.", preemptions);
  page.add("chasqui_slot_moves_total", "Requests that went to another slot to keep slots adjacent.", slot_moves);
  page.add("chasqui_passes_total", "Passes over the weights that steps took.", passes);
  page.add("chasqui_stretched_steps_total", "Prefill steps that let a stream wait beyond its target.", stretched_steps);
  page.add("chasqui_step_prediction_ratio", "Time of a step over what was predicted.", step_prediction_ratio);
  page.add("chasqui_step_rows", "Rows of a batch, by kind.", decode_rows, "kind=\"decode\"");
  page.add("chasqui_step_rows", "Rows of a batch, by kind.", prefill_rows, "kind=\"prefill\"");
  page.add("chasqui_step_seconds", "Time to compute a batch, by kind.", decode_step_seconds, "kind=\"decode\"");
  page.add("chasqui_step_seconds", "Time to compute a batch, by kind.", prefill_step_seconds, "kind=\"prefill\"");
}

void EngineMetrics::add_speculation_to(MetricsPage& page) const {
  page.add("chasqui_spec_steps_total", "Steps that checked draft tokens, counted for each request.", spec_steps);
  page.add("chasqui_spec_draft_tokens_total", "Draft tokens that were checked.", draft_tokens);
  page.add("chasqui_spec_accepted_tokens_total",
           "Draft tokens that were accepted: each is a token without a step of its own.", accepted_tokens);
  page.add("chasqui_spec_draft_rows_total", "Tokens that the draft model has read without drafting.", draft_rows);
  for (std::size_t i = 0; i < std::size(accepted_tokens_at); ++i) {
    page.add("chasqui_spec_accepted_tokens_at_total",
             "Draft tokens that were accepted, by position in the step: 0 is the first, 5 all from there on.",
             accepted_tokens_at[i], "position=\"" + std::to_string(i) + '"');
  }
}

// By class there are three of each, so they show fewer buckets than there are; compat_metrics.cpp shows all.
void EngineMetrics::add_waits_to(MetricsPage& page) const {
  const std::vector<double> waits_shown = {.001, .005, .02, .05, .1, .2, .5, 1, 2.5, 5, 10, 20, 60, 240};
  const std::vector<double> first_shown = {.001, .005, .02, .05, .1, .2, .5, 1, 2.5, 5, 10, 20, 80};
  const std::vector<double> gaps_shown = {.001, .002, .004, .006, .008, .01, .025, .05, .075, .1, .15, .2, .5, 1, 10};
  page.add("chasqui_request_prefill_seconds", "First step to the first token.", prefill_seconds, {}, waits_shown);
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    page.add("chasqui_request_queue_seconds", "Arrival to the first step, by class.", waits[c].queue_seconds,
             class_label(c), waits_shown);
  }
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    page.add("chasqui_time_to_first_token_seconds", "Arrival to the first token, by class.",
             waits[c].time_to_first_token_seconds, class_label(c), first_shown);
  }
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    page.add("chasqui_inter_token_seconds", "Time between two tokens of a request, by class.",
             waits[c].inter_token_seconds, class_label(c), gaps_shown);
  }
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    const std::string help = "By how much the first token missed the forecast of the request's arrival, by class.";
    page.add("chasqui_forecast_error_seconds", help, waits[c].forecast_late_seconds,
             "token=\"late\"," + class_label(c));
    page.add("chasqui_forecast_error_seconds", help, waits[c].forecast_early_seconds,
             "token=\"early\"," + class_label(c));
  }
  page.add("chasqui_time_per_output_token_seconds", "Mean time between tokens of a request.",
           time_per_output_token_seconds, {}, gaps_shown);
  page.add("chasqui_request_seconds", "Arrival to the end.", request_seconds, {}, waits_shown);
}

void IngressMetrics::add_to(MetricsPage& page) const {
  page.add("chasqui_slow_clients_total", "Requests cut because their client did not read.", slow_clients);
}

void DispatchMetrics::add_to(MetricsPage& page) const {
  constexpr std::string_view kReasons[] = {"pin", "prefix", "load"};
  for (std::size_t i = 0; i < std::size(kReasons); ++i) {
    page.add("chasqui_placements_total", "Requests given to a worker, by what decided which.", placements[i],
             "reason=\"" + std::string(kReasons[i]) + '"');
  }
  page.add("chasqui_placements_refused_total", "Requests of a session that would have been one too many.", refused);
  page.add("chasqui_dispatched_requests", "Requests that the dispatcher remembers.", requests);
  page.add("chasqui_pins", "Sessions that belong to a worker, with their forks counted as one.", pins);
  page.add("chasqui_placement_tokens", "Tokens of prompts that placement remembers.", sent_tokens);
}

}  // namespace chasqui
