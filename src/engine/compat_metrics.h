// What the engine counts, under the names that others have made common: autoscalers and gateways read vLLM's, existing
// dashboards llama-server's. The names that rows of engine_metrics have besides their own, summed over all workers, and
// what is computed from several of them. Added to the page at start; `metrics` outlives it.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "core/types.h"
#include "engine/engine_metrics.h"

namespace chasqui {

// `label="NAME"`, of a name from the command line: long ones are cut, so that a page of metrics has a bound.
std::string model_label(std::string_view label, std::string name);

// `model_name` comes from the command line: long ones are cut, so that the page has a bound. `cells` are of all workers
// together.
void add_vllm_metrics(MetricsPage& page, const std::deque<EngineMetrics>& metrics, const std::string& model_name,
                      TokenCount cells);
// The part of it that is there from the first adapter on.
void add_vllm_adapters(MetricsPage& page, const std::deque<EngineMetrics>& metrics, const std::string& model_name);
void add_llama_server_metrics(MetricsPage& page, const std::deque<EngineMetrics>& metrics);

}  // namespace chasqui
