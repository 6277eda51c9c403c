// Everything that the engine counts, by name: EngineMetrics by one worker, DispatchMetrics by the dispatcher where
// there are several workers, IngressMetrics by the thread that submits and reads. Read by the loop for a scrape of
// /metrics. Owned by the Engine.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "cache/disk_order.h"
#include "core/event.h"
#include "model/grammar/grammar_masks.h"
#include "sched/adapter_turns.h"
#include "sched/reuse.h"
#include "sched/speculation.h"
#include "sched/wait_queue.h"

namespace chasqui {

struct EngineMetrics {
  EngineMetrics() = default;

  Gauge requests_running;
  Gauge requests_waiting[kServiceClasses];
  Counter requests_finished[5];  // indexed by FinishReason
  Counter queue_timeouts;        // of those with an error: nothing was said in time

  Gauge kv_cells_used;
  Gauge kv_cells_total;
  Gauge kv_slots_used;
  Gauge kv_slots_cached;
  Counter cached_slots_taken;
  Counter cached_slots_copied;
  Counter cached_slots_copied_out;
  Counter cached_slots_dropped;
  Gauge kv_slots_total;

  Counter decode_steps;
  Counter prefill_steps;
  Counter decode_failures;
  Counter stalls;
  Counter aborted_steps;
  Histogram cancel_steps{{0, 1, 2, 4}};
  Gauge compute_threads;
  Counter cut_decodes;
  Counter masks_found;  // of answers with a grammar
  Counter masks_computed;
  std::atomic<double> mask_seconds{0};
  Counter preemptions;
  Counter slot_moves;
  Counter passes;
  Counter stretched_steps;
  Counter spec_steps;             // in which draft tokens were checked, counted for each sequence
  Counter draft_tokens;           // that were checked
  Counter accepted_tokens;        // … and were
  Counter accepted_tokens_at[6];  // by place, the last one for all that follow
  Counter draft_rows;             // that a draft model has read of prompts
  Histogram step_prediction_ratio{{0.8, 1, 1.25, 2}};
  Histogram decode_rows{Histogram::powers_of_two(256)};
  Histogram prefill_rows{Histogram::powers_of_two(4096)};
  Histogram decode_step_seconds{Histogram::latency_seconds()};
  Histogram prefill_step_seconds{Histogram::latency_seconds()};

  Counter cached_tokens;
  Counter prefix_hits;
  Counter prefix_misses;
  Counter prefix_waits;
  Counter snapshots_kept;
  Counter snapshots_evicted;
  Counter snapshots_refused;
  Gauge snapshots;
  Gauge snapshot_bytes;
  Gauge prefix_index_bytes;
  Histogram kv_save_seconds{Histogram::latency_seconds()};
  Histogram kv_restore_seconds{Histogram::latency_seconds()};

  Gauge snapshot_files;
  Gauge foreign_files;
  Gauge snapshot_file_bytes;
  Gauge disk_queue;
  Gauge disk_queue_bytes;
  Counter disk_evictions;
  Counter disk_dropped;
  Counter disk_write_failures;
  Counter disk_not_taken;
  Counter disk_bytes_written;
  Counter disk_bytes_read;
  Counter disk_refused[5];  // as kRefusals in the .cpp
  Histogram disk_read_seconds{Histogram::latency_seconds()};
  Histogram disk_write_seconds{Histogram::latency_seconds()};

  Gauge sleeping;  // 1: the model does
  Counter wakes;
  Histogram wake_seconds{Histogram::latency_seconds()};

  // Only with adapters: nothing is shown without.
  struct AdapterSteps {
    std::string name;
    Counter steps;
    Gauge running, waiting;  // requests that want it; of an adapter only
  };
  std::deque<AdapterSteps> adapter_steps;  // of the model alone, of each adapter by itself, of several at once
  Counter adapter_switches;
  std::atomic<double> adapter_switch_seconds{0};

  Counter prompt_tokens;
  Counter generation_tokens;

  // What clients of each class wait for.
  struct Waits {
    Histogram queue_seconds{request_bounds()};
    Histogram time_to_first_token_seconds{first_token_bounds()};
    Histogram inter_token_seconds{inter_token_bounds()};
    // Of the forecast that was made when the request came: the first token came so much later, or earlier.
    Histogram forecast_late_seconds{forecast_bounds()};
    Histogram forecast_early_seconds{forecast_bounds()};
  };
  Waits waits[kServiceClasses];  // indexed by ServiceClass
  Histogram prefill_seconds{request_bounds()};
  Histogram decode_seconds{request_bounds()};
  Histogram time_per_output_token_seconds{inter_token_bounds()};
  Histogram request_seconds{request_bounds()};
  Histogram request_prompt_tokens{token_bounds()};
  Histogram request_generation_tokens{token_bounds()};
  Histogram step_tokens{iteration_bounds()};  // rows of a step of either kind
  Gauge longest_sequence;                     // prompt and answer

  // As seed 002 has them, for the JSON form: 1, 2, 4 … 1024.
  Histogram ttft_ms{Histogram::powers_of_two(1024)};
  Histogram inter_token_ms{Histogram::powers_of_two(1024)};
  Histogram decode_ms{Histogram::powers_of_two(1024)};
  Histogram batch_size{Histogram::powers_of_two(1024)};

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
  void follow_masks(const GrammarMaskCost& cost);
  void follow_speculation(const Speculation& speculation);
  // Before anything is counted.
  void name_adapters(const std::vector<std::string>& names);
  void count_adapters(const AdapterSet* set);
  void follow_adapters(const AdapterTurns& turns);
  void show_adapters(const RunningSequences& running, const WaitQueue::Line& waiting);
  void count_disk(const DiskOutcome& outcome);
  // `counter` becomes `total`, a count that is kept elsewhere. One writer.
  static void follow(Counter& counter, std::uint64_t total) { counter.add(total - counter.value()); }
  // What tells one worker from another: few, for each is on the page once for every worker.
  void add_to(MetricsPage& page) const;
  // What matters of all workers together only; not in add_to(). The second where there is a disk.
  void add_shared_to(MetricsPage& page) const;
  void add_disk_to(MetricsPage& page) const;

 private:
  void add_reuse_to(MetricsPage& page) const;
  void add_adapters_to(MetricsPage& page) const;
  void add_steps_to(MetricsPage& page) const;
  void add_waits_to(MetricsPage& page) const;
  void add_speculation_to(MetricsPage& page) const;
};

struct IngressMetrics {
  Counter requests_refused;
  Counter slow_clients;

  // Not the refusals, which stand beside those of admission.
  void add_to(MetricsPage& page) const;
};

struct DispatchMetrics {
  Counter placements[3];  // indexed by Placement::Reason
  Counter refused;        // because there were too many pins
  Gauge requests;
  Gauge pins;
  Gauge sent_tokens;

  void add_to(MetricsPage& page) const;
};

}  // namespace chasqui
