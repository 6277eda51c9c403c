// Everything that the engine counts, by name. Written by the worker and by submit(), read by the loop when somebody
// asks for /metrics. Owned by the Engine.
#pragma once

#include "base/metrics.h"
#include "core/event.h"

namespace chasqui {

struct EngineMetrics {
  EngineMetrics() = default;

  Gauge requests_running;
  Gauge requests_waiting;
  Counter requests_refused;
  Counter requests_finished[5];  // indexed by FinishReason

  Gauge kv_cells_used;
  Gauge kv_cells_total;
  Gauge kv_slots_used;
  Gauge kv_slots_total;

  Counter decode_steps;
  Counter prefill_steps;
  Counter decode_failures;
  Histogram decode_rows{Histogram::powers_of_two(256)};
  Histogram prefill_rows{Histogram::powers_of_two(4096)};
  Histogram decode_step_seconds{Histogram::latency_seconds()};
  Histogram prefill_step_seconds{Histogram::latency_seconds()};

  Counter prompt_tokens;
  Counter generation_tokens;
  Counter slow_clients;

  Histogram queue_seconds{Histogram::latency_seconds()};
  Histogram prefill_seconds{Histogram::latency_seconds()};
  Histogram time_to_first_token_seconds{Histogram::latency_seconds()};
  Histogram time_per_output_token_seconds{Histogram::latency_seconds()};
  Histogram request_seconds{Histogram::latency_seconds()};

  void count_finished(const Event& event);
  void add_to(MetricsPage& page) const;
};

}  // namespace chasqui
