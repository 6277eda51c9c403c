#include "engine/engine_metrics.h"

namespace chasqui {

void EngineMetrics::count_finished(const Event& event) {
  const Usage& usage = event.usage;
  requests_finished[static_cast<std::size_t>(event.reason)].add();
  queue_seconds.observe(to_seconds(usage.queue));
  request_seconds.observe(to_seconds(usage.queue + usage.prefill + usage.decode));
  if (usage.completion == 0) return;
  prefill_seconds.observe(to_seconds(usage.prefill));
  time_to_first_token_seconds.observe(to_seconds(usage.queue + usage.prefill));
  if (usage.completion > 1) {
    time_per_output_token_seconds.observe(to_seconds(usage.decode) / (usage.completion - 1));
  }
}

void EngineMetrics::add_to(MetricsPage& page) const {
  page.add("chasqui_requests_running", "Requests that hold a slot.", requests_running);
  page.add("chasqui_requests_waiting", "Requests that wait for a slot.", requests_waiting);
  page.add("chasqui_requests_refused_total", "Requests refused because the queue was full.", requests_refused);
  for (std::size_t i = 0; i < std::size(requests_finished); ++i) {
    const std::string_view reason = name(static_cast<FinishReason>(i));
    page.add("chasqui_requests_finished_total", "Requests that ended, by reason.", requests_finished[i],
             "reason=\"" + std::string(reason) + '"');
  }
  page.add("chasqui_kv_cells_used", "KV positions that hold something.", kv_cells_used);
  page.add("chasqui_kv_cells", "KV positions of the context.", kv_cells_total);
  page.add("chasqui_kv_slots_used", "Slots that are taken.", kv_slots_used);
  page.add("chasqui_kv_slots", "Slots of the context.", kv_slots_total);
  page.add("chasqui_steps_total", "Batches computed, by kind.", decode_steps, "kind=\"decode\"");
  page.add("chasqui_steps_total", "Batches computed, by kind.", prefill_steps, "kind=\"prefill\"");
  page.add("chasqui_decode_failures_total", "Batches that the model could not compute.", decode_failures);
  page.add("chasqui_step_rows", "Rows of a batch, by kind.", decode_rows, "kind=\"decode\"");
  page.add("chasqui_step_rows", "Rows of a batch, by kind.", prefill_rows, "kind=\"prefill\"");
  page.add("chasqui_step_seconds", "Time to compute a batch, by kind.", decode_step_seconds, "kind=\"decode\"");
  page.add("chasqui_step_seconds", "Time to compute a batch, by kind.", prefill_step_seconds, "kind=\"prefill\"");
  page.add("chasqui_prompt_tokens_total", "Prompt tokens computed.", prompt_tokens);
  page.add("chasqui_generation_tokens_total", "Tokens generated.", generation_tokens);
  page.add("chasqui_slow_clients_total", "Requests cut because their client did not read.", slow_clients);
  page.add("chasqui_request_queue_seconds", "Arrival to the first step.", queue_seconds);
  page.add("chasqui_request_prefill_seconds", "First step to the first token.", prefill_seconds);
  page.add("chasqui_time_to_first_token_seconds", "Arrival to the first token.", time_to_first_token_seconds);
  page.add("chasqui_time_per_output_token_seconds", "Mean time between tokens of a request.",
           time_per_output_token_seconds);
  page.add("chasqui_request_seconds", "Arrival to the end.", request_seconds);
}

}  // namespace chasqui
