// Everything that the engine counts, by name: EngineMetrics by one worker, DispatchMetrics by the dispatcher where
// there are several workers, IngressMetrics by the thread that submits and reads. Read by the loop for a scrape of
// /metrics. Owned by the Engine.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "base/metric_set.h"
#include "cache/disk_order.h"
#include "core/event.h"
#include "model/grammar/grammar_masks.h"
#include "sched/adapter_turns.h"
#include "sched/reuse.h"
#include "sched/speculation.h"
#include "sched/wait_queue.h"

namespace chasqui {

// What a row says belongs to one of the sets: each worker's own is on the page once for every worker, so it is little;
// of all else the workers' sum is.
struct EngineMetrics {
  EngineMetrics();
  ~EngineMetrics();

  MetricSet each_worker;
  MetricSet all_workers;
  MetricSet of_disk;      // where there is one
  MetricSet of_adapters;  // where there are some
  MetricSet of_media;     // where the model reads pictures or sounds

  Gauge requests_running{each_worker, MetricRow("chasqui_requests_running", kRunning)
                                          .also("vllm:num_requests_running", kRunning)
                                          .also("llamacpp:requests_processing", kRunning)};
  MetricArray<Gauge, kServiceClasses> requests_waiting{each_worker, &waiting_row};
  MetricArray<Counter, 5> requests_finished{each_worker, &finished_row};  // indexed by FinishReason
  // Of those with an error: nothing was said in time.
  Counter queue_timeouts{all_workers, {"chasqui_queue_timeouts_total", "Requests that waited too long."}};

  Gauge kv_cells_used{each_worker, {"chasqui_kv_cells_used", "KV positions that hold something."}};
  Gauge kv_cells_total{each_worker, {"chasqui_kv_cells", "KV positions of the context."}};
  Gauge kv_slots_used{each_worker, {"chasqui_kv_slots_used", "Slots that are taken."}};
  Gauge kv_slots_cached{each_worker, {"chasqui_kv_slots_cached", "Slots that hold what a finished request has left."}};
  Gauge kv_slots_total{each_worker, {"chasqui_kv_slots", "Slots of the context."}};

  Counter decode_steps{each_worker, MetricRow("chasqui_steps_total", "Batches computed, by kind.", kDecode)
                                        .also("llamacpp:n_decode_total", kDecodeCalls)};
  Counter prefill_steps{each_worker,
                        MetricRow("chasqui_steps_total", {}, kPrefill).also("llamacpp:n_decode_total", kDecodeCalls)};
  Counter failed_steps{each_worker, {"chasqui_steps_failed_total", "Batches that the model could not compute."}};
  Counter stalls{each_worker,
                 {"chasqui_worker_stalls_total",
                  "Times that a worker stood still in a step, so that its requests were given up."}};
  Gauge compute_threads{each_worker, {"chasqui_compute_threads", "Compute threads of the last step."}};
  Counter prompt_tokens{each_worker, MetricRow("chasqui_prompt_tokens_total", "Prompt tokens computed.")
                                         .also("vllm:prompt_tokens_total", "Tokens of prompts, cached or computed.")
                                         .also("vllm:prefix_cache_queries_total", kLookedFor)
                                         .also("llamacpp:prompt_tokens_total", "Prompt tokens computed.")};
  Counter generation_tokens{each_worker, MetricRow("chasqui_generation_tokens_total", kGenerated)
                                             .also("vllm:generation_tokens_total", kGenerated)
                                             .also("llamacpp:tokens_predicted_total", kGenerated)};

  Counter aborted_steps{
      all_workers,
      {"chasqui_steps_aborted_total", "Steps cut short because their only client left, or for an urgent arrival."}};
  Histogram cancel_steps{
      all_workers, {"chasqui_cancel_steps", "Steps between a client's leaving and its slot being free."}, {0, 1, 2, 4}};
  Counter restarted_steps{
      all_workers,
      {"chasqui_steps_restarted_total", "Steps begun again with fewer threads because something else held a core."}};
  Counter media_encoded{of_media,
                        {"chasqui_media_encoded_total", "Pictures and sounds that were encoded, or parts of them."}};
  Counter media_reused{of_media,
                       {"chasqui_media_reused_total",
                        "… that were read as they had been encoded before. Those in the prefix cache are not read."}};
  Counter media_read{of_media, {"chasqui_media_disk_read_total", "… of these, read from files of --cache-disk."}};
  Histogram media_encode_seconds{
      of_media, MetricRow("chasqui_media_encode_seconds", "Time to encode one of them.").buckets(coarse())};
  Gauge media_cache_bytes{of_media, {"chasqui_media_cache_bytes", "What the model keeps of them, encoded."}};
  Counter masks_found{all_workers,
                      {"chasqui_grammar_masks_total",
                       "Masks of grammars that answers asked for, kept from before or computed.", "from=\"kept\""}};
  Counter masks_computed{all_workers, {"chasqui_grammar_masks_total", {}, "from=\"computed\""}};
  Counter masks_put_off{all_workers,
                        {"chasqui_grammar_masks_put_off_total",
                         "Times that a token waited for a step more because the mask of its grammar takes long."}};
  FloatGauge mask_seconds{all_workers,
                          {"chasqui_grammar_mask_seconds_total", "Time that workers computed masks of grammars."}};
  Counter forced_tokens{
      all_workers,
      {"chasqui_forced_tokens_total", "Tokens generated without being sampled, because a grammar left no choice."}};
  Counter preemptions{
      all_workers, MetricRow("chasqui_preemptions_total", kPreempted).also("vllm:num_preemptions_total", kPreempted)};
  Counter slot_moves{all_workers,
                     {"chasqui_slot_moves_total", "Requests that went to another slot to keep slots adjacent."}};
  Counter passes{all_workers, {"chasqui_passes_total", "Passes over the weights that steps took."}};
  Counter stretched_steps{all_workers,
                          {"chasqui_stretched_steps_total", "Prefill steps that let a stream wait beyond its target."}};
  // In which draft tokens were checked, counted for each sequence.
  Counter spec_steps{all_workers, MetricRow("chasqui_spec_steps_total", kDrafts)
                                      .also("vllm:spec_decode_num_drafts_total", kDrafts)
                                      .also("llamacpp:spec_decode_num_drafts_total", kDrafts)};
  Counter draft_tokens{all_workers, MetricRow("chasqui_spec_draft_tokens_total", kChecked)
                                        .also("vllm:spec_decode_num_draft_tokens_total", kChecked)
                                        .also("llamacpp:spec_decode_num_draft_tokens_total", kChecked)};
  Counter accepted_tokens{all_workers, MetricRow("chasqui_spec_accepted_tokens_total", kAccepted)
                                           .also("vllm:spec_decode_num_accepted_tokens_total", kAccepted)
                                           .also("llamacpp:spec_decode_num_accepted_tokens_total", kAccepted)};
  MetricArray<Counter, 6> accepted_tokens_at{all_workers, &accepted_row};  // the last one for all that follow
  Counter draft_rows{all_workers,
                     {"chasqui_spec_draft_rows_total", "Tokens that the draft model has read without drafting."}};
  Histogram step_prediction_ratio{
      all_workers, {"chasqui_step_prediction_ratio", "Time of a step over what was predicted."}, {0.8, 1, 1.25, 2}};
  Histogram decode_rows{
      all_workers, {"chasqui_step_rows", "Rows of a batch, by kind.", kDecode}, Histogram::powers_of_two(256)};
  Histogram prefill_rows{all_workers, {"chasqui_step_rows", {}, kPrefill}, Histogram::powers_of_two(4096)};
  Histogram decode_step_seconds{all_workers, {"chasqui_step_seconds", "Time to compute a batch, by kind.", kDecode}};
  Histogram prefill_step_seconds{all_workers, {"chasqui_step_seconds", {}, kPrefill}};

  Counter cached_tokens{all_workers,
                        MetricRow("chasqui_prompt_tokens_cached_total", kCached)
                            .also("vllm:prompt_tokens_total", {})
                            .also("vllm:prompt_tokens_cached_total", kCached)
                            .also("vllm:prefix_cache_queries_total", {})
                            .also("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.")
                            .also("llamacpp:prompt_tokens_cached_total", kCached)};
  Counter prefix_hits{all_workers,
                      {"chasqui_prefix_cache_queries_total",
                       "Requests that got a slot, by whether a prefix was cached.", "result=\"hit\""}};
  Counter prefix_misses{all_workers, {"chasqui_prefix_cache_queries_total", {}, "result=\"miss\""}};
  Counter prefix_waits{all_workers,
                       {"chasqui_prefix_waits_total", "Requests that waited for another one to compute their prefix."}};
  Counter cached_slots_taken{all_workers,
                             {"chasqui_cached_slots_reused_total",
                              "Requests that began with what a slot still held, by how.", "how=\"in_place\""}};
  Counter cached_slots_copied{all_workers, {"chasqui_cached_slots_reused_total", {}, "how=\"copied\""}};
  Counter cached_slots_copied_out{
      all_workers, {"chasqui_cached_slots_copied_out_total", "Slots of finished requests copied to host memory."}};
  Counter cached_slots_dropped{
      all_workers, {"chasqui_cached_slots_dropped_total", "Slots of finished requests that were given to others."}};
  Gauge snapshots{all_workers, {"chasqui_snapshots", "Sequences kept in host memory."}};
  Gauge snapshot_bytes{all_workers, {"chasqui_snapshot_bytes", "Their size."}};
  Gauge prefix_index_bytes{all_workers, {"chasqui_prefix_index_bytes", "Memory to find them by their tokens."}};
  Counter snapshots_kept{all_workers, {"chasqui_snapshots_kept_total", "Sequences copied to host memory."}};
  Counter snapshots_evicted{all_workers, {"chasqui_snapshots_evicted_total", "Sequences that made room for others."}};
  Counter snapshots_refused{all_workers, {"chasqui_snapshots_refused_total", "Sequences too large to be kept."}};
  Histogram kv_save_seconds{
      all_workers, MetricRow("chasqui_kv_save_seconds", "Time to copy sequences out in one step.").buckets(coarse())};
  Histogram kv_restore_seconds{
      all_workers,
      MetricRow("chasqui_kv_restore_seconds", "Time to bring sequences back in one step.").buckets(coarse())};

  Gauge snapshot_files{of_disk, {"chasqui_disk_snapshots", "Sequences kept in files that this model can use."}};
  Gauge foreign_files{of_disk, {"chasqui_disk_snapshots_foreign", "Files of other models or settings."}};
  Gauge snapshot_file_bytes{of_disk, {"chasqui_disk_bytes", "Size of all of them."}};
  Gauge disk_queue{of_disk, {"chasqui_disk_queue", "Sequences that wait to be written."}};
  Gauge disk_queue_bytes{of_disk, {"chasqui_disk_queue_bytes", "Host memory that they take beyond the cache."}};
  Counter disk_dropped{of_disk, {"chasqui_disk_dropped_total", "Sequences not written because others came faster."}};
  Counter disk_evictions{of_disk, {"chasqui_disk_evictions_total", "Files that made room for others."}};
  Counter disk_write_failures{of_disk, {"chasqui_disk_write_failures_total", "Files that could not be written."}};
  Counter disk_bytes_written{of_disk, {"chasqui_disk_written_bytes_total", "KV written to files."}};
  Counter disk_bytes_read{of_disk, {"chasqui_disk_read_bytes_total", "KV read from files."}};
  MetricArray<Counter, 5> disk_refused{of_disk, &disk_refused_row};  // as kDiskRefusals in the .cpp
  Counter disk_not_taken{of_disk, {"chasqui_disk_refused_total", {}, "reason=\"not_taken\""}};
  Counter disk_late{of_disk, {"chasqui_disk_refused_total", {}, "reason=\"late\""}};
  Histogram disk_read_seconds{
      of_disk, MetricRow("chasqui_disk_read_seconds", "Time to read and check a file.").buckets(coarse())};
  Histogram disk_write_seconds{
      of_disk, MetricRow("chasqui_disk_write_seconds", "Time to write and sync a file.").buckets(coarse())};

  // 1: the model does.
  Gauge sleeping{all_workers, {"chasqui_sleeping", "1 while the model is out of memory for want of work."}};
  Counter wakes{all_workers, {"chasqui_wakes_total", "Times that the model was loaded again."}};
  Counter failed_wakes{all_workers, {"chasqui_failed_wakes_total", "Times that it could not be loaded again."}};
  Histogram wake_seconds{all_workers,
                         MetricRow("chasqui_wake_seconds", "Time to load the model again.").buckets(coarse())};

  static constexpr std::size_t kAdapters = kSizeLimit<"adapters">;
  struct AdapterWish {
    Gauge running, waiting;  // requests that want it
  };
  struct AdapterSteps {
    std::string name;  // loop thread; empty: no adapter has the place
    Counter steps;
    AdapterWish by_name, in_full;  // … and call it so, or "MODEL:name"; of an adapter only
  };
  // Of the model alone, then of each adapter by itself, by place.
  std::deque<AdapterSteps> adapter_steps{kAdapters + 1};
  // The first worker's counts for all.
  Gauge adapters{of_adapters, {"chasqui_adapters", "LoRA adapters that are loaded, or unloaded and still in use."}};
  Counter steps_of_several{of_adapters, adapter_row("several")};
  Counter adapter_switches{of_adapters,
                           {"chasqui_adapter_switches_total", "Steps with other adapters than the one before."}};
  FloatGauge adapter_switch_seconds{
      of_adapters, {"chasqui_adapter_switch_seconds", "What such a step takes longer, as far as is known."}};

  // What clients of each class wait for. By class there are three of each, so they show fewer buckets than there are;
  // vLLM's names show all.
  struct Waits {
    Waits(MetricSet& set, ServiceClass of);
    Histogram queue_seconds;
    Histogram time_to_first_token_seconds;
    Histogram inter_token_seconds;
    // Of the forecast that was made when the request came: the first token came so much later, or earlier.
    Histogram forecast_late_seconds;
    Histogram forecast_early_seconds;
  };
  Waits waits[kServiceClasses] = {{all_workers, ServiceClass::interactive},  // indexed by ServiceClass
                                  {all_workers, ServiceClass::standard},
                                  {all_workers, ServiceClass::background}};
  Histogram prefill_seconds{all_workers,
                            MetricRow("chasqui_request_prefill_seconds", "First step to the first token.")
                                .also("vllm:request_prefill_time_seconds", "First step to the first token.")
                                .buckets(request_buckets()),
                            request_bounds()};
  Histogram decode_seconds{
      all_workers, MetricRow().also("vllm:request_decode_time_seconds", "First token to the last."), request_bounds()};
  Histogram time_per_output_token_seconds{
      all_workers,
      MetricRow("chasqui_time_per_output_token_seconds", "Mean time between tokens of a request.")
          .buckets(gap_buckets()),
      inter_token_bounds()};
  Histogram request_cpu_seconds{
      all_workers,
      {"chasqui_request_cpu_seconds", "Processor time of a request: its shares of the steps that had rows of it."},
      request_bounds()};
  Histogram request_seconds{all_workers,
                            MetricRow("chasqui_request_seconds", "Arrival to the end.")
                                .also("vllm:e2e_request_latency_seconds", "Arrival to the end.")
                                .buckets(request_buckets()),
                            request_bounds()};
  Histogram request_prompt_tokens{all_workers, MetricRow().also("vllm:request_prompt_tokens", "Tokens of a prompt."),
                                  token_bounds()};
  Histogram request_generation_tokens{
      all_workers, MetricRow().also("vllm:request_generation_tokens", "Tokens of an answer."), token_bounds()};
  // Of either kind.
  Histogram step_tokens{all_workers, MetricRow().also("vllm:iteration_tokens_total", "Rows of a step."),
                        iteration_bounds()};
  Gauge longest_sequence;  // prompt and answer; compat_metrics shows the longest of all workers

  // As seed 002 has them, for the JSON form: 1, 2, 4 … 1024.
  Histogram ttft_ms{all_workers, MetricRow("ttft_ms", "Arrival to the first token.").in_json_only(),
                    Histogram::powers_of_two(1024)};
  Histogram inter_token_ms{all_workers,
                           MetricRow("inter_token_ms", "Time between two tokens of a request.").in_json_only(),
                           Histogram::powers_of_two(1024)};
  Histogram decode_ms{all_workers, MetricRow("decode_ms", "Time to compute a batch.").in_json_only(),
                      Histogram::powers_of_two(1024)};
  Histogram batch_size{all_workers, MetricRow("batch_size", "Rows of a batch.").in_json_only(),
                       Histogram::powers_of_two(1024)};

  // vLLM's bounds, so that dashboards written for it stay right, and finer ones where small models live.
  static std::vector<double> first_token_bounds();
  static std::vector<double> forecast_bounds();
  static std::vector<double> inter_token_bounds();
  static std::vector<double> request_bounds();
  static std::vector<double> token_bounds();
  static std::vector<double> iteration_bounds();

  void count_finished(const Event& event);
  void count_tokens(const std::vector<Event>& events);  // of one step
  void count_step(const Batch& batch, Duration took);
  void follow_reuse(const Reuse& reuse);
  // A unit is there to be read; `fresh`: it was encoded for that.
  void count_encoding(bool fresh, Duration took);
  void follow_masks(const GrammarMaskCost& cost);
  void follow_speculation(const Speculation& speculation);
  // By place. Before anything is counted.
  void name_adapters(const std::vector<std::string>& names);
  // Loop thread, while no request can have the adapter in this place; empty: there is none. It counts from 0.
  void name_adapter(std::size_t place, const std::string& name);
  static MetricRow adapter_row(const std::string& name);
  static void add_adapter_row(MetricsPage& page, const AdapterSteps& steps);
  // Places that have one.
  std::size_t named_adapters() const { return named_adapters_.load(std::memory_order_relaxed); }
  void count_adapters(const AdapterSet* set);
  void follow_adapters(const AdapterTurns& turns);
  void show_adapters(const RunningSequences& running, const WaitQueue::Line& waiting);
  void count_disk(const DiskOutcome& outcome);
  // `counter` becomes `total`, a count that is kept elsewhere. One writer.
  static void follow(Counter& counter, std::uint64_t total) { counter.add(total - counter.value()); }
  // What the sum of all workers shows, but for the disk.
  void add_shared_to(MetricsPage& page) const;
  // What else the sums are known as, by names that begin with `prefix`.
  void add_others_to(MetricsPage& page, std::string_view prefix, const std::string& labels = {}) const;

 private:
  static MetricRow waiting_row(std::size_t service_class);
  static MetricRow finished_row(std::size_t reason);
  static MetricRow accepted_row(std::size_t position);
  static MetricRow disk_refused_row(std::size_t refusal);
  // Buckets of the page: it has a bound.
  static std::vector<double> coarse() { return {.001, .005, .02, .1, .5, 2, 10, 60}; }  // for what is rare
  static std::vector<double> request_buckets() {
    return {.001, .005, .02, .05, .1, .2, .5, 1, 2.5, 5, 10, 20, 60, 240};
  }
  static std::vector<double> gap_buckets() {
    return {.001, .002, .004, .006, .008, .01, .025, .05, .075, .1, .15, .2, .5, 1, 10};
  }

  // Helps that several names share.
  static constexpr const char* kRunning = "Requests that hold a slot.";
  static constexpr const char* kDecode = "kind=\"decode\"";
  static constexpr const char* kPrefill = "kind=\"prefill\"";
  static constexpr const char* kDecodeCalls = "Calls of llama_decode.";
  static constexpr const char* kGenerated = "Tokens generated.";
  static constexpr const char* kCached = "Tokens of prompts that were not computed again.";
  static constexpr const char* kLookedFor = "Tokens looked for in the prefix cache.";
  static constexpr const char* kPreempted = "Requests that lost their slot for a while.";
  static constexpr const char* kDrafts = "Steps that checked draft tokens, counted for each request.";
  static constexpr const char* kChecked = "Draft tokens that were checked.";
  static constexpr const char* kAccepted =
      "Draft tokens that were accepted: each is a token without a step of its own.";

  std::atomic<std::size_t> named_adapters_{0};
};

struct IngressMetrics : MetricSet {
  Counter requests_refused{
      *this, {"chasqui_requests_refused_total", "Requests refused at the door, by reason.", "reason=\"engine\""}};
  Counter slow_clients{*this, {"chasqui_slow_clients_total", "Requests cut because their client did not read."}};
};

struct DispatchMetrics : MetricSet {
  MetricArray<Counter, 3> placements{*this, &placement_row};  // indexed by Placement::Reason
  // Because there were too many pins.
  Counter refused{*this,
                  {"chasqui_placements_refused_total", "Requests of a session that would have been one too many."}};
  Gauge requests{*this, {"chasqui_dispatched_requests", "Requests that the dispatcher remembers."}};
  Gauge pins{*this, {"chasqui_pins", "Sessions that belong to a worker, with their forks counted as one."}};
  Gauge sent_tokens{*this, {"chasqui_placement_tokens", "Tokens of prompts that placement remembers."}};

 private:
  static MetricRow placement_row(std::size_t reason);
};

}  // namespace chasqui
