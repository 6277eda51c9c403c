#include "engine/compat_metrics.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

Event ended_after(FinishReason reason, TokenCount tokens) {
  Event event;
  event.kind = Event::Kind::finished;
  event.reason = reason;
  event.usage.prompt = 10;
  event.usage.completion = tokens;
  return event;
}

std::string page_of(const std::deque<EngineMetrics>& metrics, const std::string& model) {
  MetricsPage page;
  add_vllm_metrics(page, metrics, model, 512);
  add_llama_server_metrics(page, metrics);
  return page.render();
}

bool has(const std::string& page, const std::string& line) {
  return page.find('\n' + line + '\n') != std::string::npos;
}

TEST(CompatMetrics, AreSumsOverAllWorkers) {
  std::deque<EngineMetrics> metrics(2);
  for (EngineMetrics& worker : metrics) {
    worker.requests_running.set(3);
    worker.requests_waiting[0].set(1);
    worker.requests_waiting[2].set(4);
    worker.kv_cells_used.set(25);
    worker.kv_cells_total.set(100);
    worker.prompt_tokens.add(7);
    worker.cached_tokens.add(2);
    worker.count_finished(ended_after(FinishReason::deadline, 5));
  }
  metrics[1].count_finished(ended_after(FinishReason::length, 1));
  const std::string page = page_of(metrics, "m");
  EXPECT_TRUE(has(page, "vllm:num_requests_running{model_name=\"m\"} 6"));
  EXPECT_TRUE(has(page, "vllm:num_requests_waiting{model_name=\"m\"} 10"));
  EXPECT_TRUE(has(page, "vllm:kv_cache_usage_perc{model_name=\"m\"} 0.25"));
  EXPECT_TRUE(has(page, "vllm:prompt_tokens_total{model_name=\"m\"} 18")) << "cached ones are tokens of prompts, too";
  EXPECT_TRUE(has(page, "vllm:prefix_cache_hits_total{model_name=\"m\"} 4"));
  EXPECT_TRUE(has(page, "vllm:request_success_total{model_name=\"m\",finished_reason=\"length\"} 3"));
  EXPECT_TRUE(has(page, "vllm:e2e_request_latency_seconds_count{model_name=\"m\"} 3"));
  EXPECT_TRUE(has(page, "llamacpp:requests_deferred 10"));
  EXPECT_TRUE(has(page, "llamacpp:n_tokens_max 15"));
}

TEST(CompatMetrics, CellsAreBlocksOfWhatEndpointPickersReckonWith) {
  const std::deque<EngineMetrics> metrics(1);
  const std::string page = page_of(metrics, "m");
  EXPECT_TRUE(has(page, R"(vllm:cache_config_info{model_name="m",block_size="64",num_gpu_blocks="8"} 1)")) << page;
}

TEST(CompatMetrics, NameAdaptersAsRequestsNameThem) {
  std::deque<EngineMetrics> metrics(2);
  for (EngineMetrics& worker : metrics) worker.name_adapters({"one", "two"});
  metrics[0].adapter_steps[1].by_name.running.set(1);
  metrics[1].adapter_steps[1].in_full.running.set(2);
  metrics[1].adapter_steps[2].in_full.waiting.set(1);
  const std::string page = page_of(metrics, "m");
  EXPECT_NE(page.find(R"(running_lora_adapters="one,m:one",waiting_lora_adapters="m:two")"), std::string::npos) << page;
}

TEST(CompatMetrics, RatesAreZeroWhereNothingWasComputedSinceTheLastReading) {
  std::deque<EngineMetrics> metrics(1);
  MetricsPage page;
  add_llama_server_metrics(page, metrics);
  metrics[0].generation_tokens.add(30);
  metrics[0].decode_step_seconds.observe(2);
  EXPECT_TRUE(has(page.render(), "llamacpp:predicted_tokens_seconds 15"));
  EXPECT_TRUE(has(page.render(), "llamacpp:predicted_tokens_seconds 0"));
  EXPECT_TRUE(has(page.render(), "llamacpp:prompt_tokens_seconds 0"));
}

TEST(CompatMetrics, HaveEveryBoundOfVllm) {
  const std::deque<EngineMetrics> metrics(1);
  const std::string page = page_of(metrics, "m");
  const auto bucket = [&](const char* family, const char* bound) {
    return has(page, std::string("vllm:") + family + "_bucket{model_name=\"m\",le=\"" + bound + "\"} 0");
  };
  for (const char* bound : {"0.001", "0.005", "0.01", "0.02", "0.04", "0.06", "0.08", "0.1", "0.25", "0.5", "0.75",
                            "1",     "2.5",   "5",    "7.5",  "10",   "20",   "40",   "80",  "160",  "640", "2560"}) {
    EXPECT_TRUE(bucket("time_to_first_token_seconds", bound)) << bound;
  }
  for (const char* bound : {"0.01", "0.025", "0.05", "0.075", "0.1", "0.15", "0.2", "0.3", "0.4", "0.5", "0.75", "1",
                            "2.5", "5", "7.5", "10", "20", "40", "80"}) {
    EXPECT_TRUE(bucket("inter_token_latency_seconds", bound)) << bound;
  }
  for (const char* bound : {"0.3", "0.5", "0.8", "1",  "1.5", "2",   "2.5", "5",   "10",   "15",  "20",
                            "30",  "40",  "50",  "60", "120", "240", "480", "960", "1920", "7680"}) {
    EXPECT_TRUE(bucket("e2e_request_latency_seconds", bound)) << bound;
  }
}

TEST(CompatMetrics, CutLongNamesOfModelsBetweenCharacters) {
  const std::deque<EngineMetrics> metrics(1);
  const std::string page = page_of(metrics, std::string(31, 'a') + "\xC3\xA9\n");
  EXPECT_TRUE(has(page, "vllm:num_requests_running{model_name=\"" + std::string(31, 'a') + "\"} 0"));
}

// A busy day's numbers and four workers.
TEST(CompatMetrics, LeaveRoomForTheRestOfAPageOf64KiB) {
  std::deque<EngineMetrics> metrics(4);
  Batch batch;
  batch.rows.resize(8);
  for (EngineMetrics& worker : metrics) {
    for (int i = 0; i < 100'000; ++i) {
      worker.count_step(batch, milliseconds(3));
    }
    worker.count_finished(ended_after(FinishReason::stop, 100));
  }
  MetricsPage page;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    page.label_with("worker=\"" + std::to_string(i) + '"');
    metrics[i].each_worker.add_to(page);
  }
  page.label_with({});
  add_vllm_metrics(page, metrics, "my-model", 4096);
  add_llama_server_metrics(page, metrics);
  EXPECT_LE(page.render().size(), 58u * 1024);
}

}  // namespace
}  // namespace chasqui
