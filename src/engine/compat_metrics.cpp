#include "engine/compat_metrics.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/json_writer.h"

namespace chasqui {
namespace {

using Workers = std::deque<EngineMetrics>;

constexpr std::size_t kModelNameMax = 32;
constexpr std::size_t kAdapterListMax = 1024;

// A quoted label value: Prometheus escapes as JSON does what a model's name may hold.
std::string model_label(std::string name) {
  if (name.size() > kModelNameMax) {
    std::size_t end = kModelNameMax;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // not inside a character
    name.resize(end);
  }
  std::erase_if(name, [](unsigned char c) { return c < ' '; });
  std::string out = "model_name=";
  append_json_string(out, name);
  return out;
}

// Names of the adapters that requests want, as vLLM has them: "a,b". What does not fit is left out.
std::string adapters_wanted(const Workers& workers, const Gauge EngineMetrics::AdapterSteps::*wanted) {
  std::string names;
  for (std::size_t i = 0; i < workers.front().adapter_steps.size(); ++i) {
    const auto wants = [i, wanted](const EngineMetrics& m) { return (m.adapter_steps[i].*wanted).value() > 0; };
    if (std::ranges::none_of(workers, wants)) continue;
    std::string quoted;
    append_json_escaped(quoted, workers.front().adapter_steps[i].name);
    if (names.size() + quoted.size() + 1 > kAdapterListMax) break;
    if (!names.empty()) names += ',';
    names += quoted;
  }
  return names;
}

void add_adapters(MetricsPage& page, const Workers& workers) {
  if (workers.front().adapter_steps.empty()) return;
  // Beside the adapters there are steps of none and of several. All that are loaded can be in use at once.
  const std::string most = "max_lora=\"" + std::to_string(workers.front().adapter_steps.size() - 2) + '"';
  const auto labels = [&workers, most] {
    return most + ",running_lora_adapters=\"" + adapters_wanted(workers, &EngineMetrics::AdapterSteps::running) +
           "\",waiting_lora_adapters=\"" + adapters_wanted(workers, &EngineMetrics::AdapterSteps::waiting) + '"';
  };
  page.add_labelled(
      "vllm:lora_requests_info", "Adapters that running and waiting requests want; the value is the time.",
      [] { return static_cast<double>(RealClock().unix_seconds()); },
      R"(max_lora="",running_lora_adapters="",waiting_lora_adapters="")", labels, 2 * kAdapterListMax + most.size());
}

double over(double a, double b) { return b > 0 ? a / b : 0; }

// How many a second since the page was read before: nothing where nothing was computed since, as in llama-server. Read
// by the thread that renders the page.
class Pace {
 public:
  double since_last(double count, double seconds) {
    return over(count - std::exchange(count_, count), seconds - std::exchange(seconds_, seconds));
  }

 private:
  double count_ = 0;
  double seconds_ = 0;
};

template <class Read>
double sum(const Workers& workers, Read read) {
  double total = 0;
  for (const EngineMetrics& metrics : workers) total += static_cast<double>(read(metrics));
  return total;
}

double running(const Workers& workers) {
  return sum(workers, [](const EngineMetrics& m) { return m.requests_running.value(); });
}

double waiting(const Workers& workers) {
  return sum(workers, [](const EngineMetrics& m) {
    std::int64_t all = 0;
    for (const Gauge& of_class : m.requests_waiting) all += of_class.value();
    return all;
  });
}

double kv_usage(const Workers& workers) {
  return over(sum(workers, [](const EngineMetrics& m) { return m.kv_cells_used.value(); }),
              sum(workers, [](const EngineMetrics& m) { return m.kv_cells_total.value(); }));
}

// Names for what is added here.
class Board {
 public:
  Board(MetricsPage& page, const Workers& workers, std::string labels)
      : page_(page), workers_(workers), labels_(std::move(labels)) {}

  void gauge(const char* name, const char* help, double (*read)(const Workers&)) {
    page_.add_computed(
        name, help, [&workers = workers_, read] { return read(workers); }, labels_);
  }
  void counter(const char* name, const char* help, const Counter EngineMetrics::*counter) {
    for (const EngineMetrics& metrics : workers_) page_.add(name, help, metrics.*counter, labels_);
  }
  void histogram(const char* name, const char* help, const Histogram EngineMetrics::*histogram) {
    for (const EngineMetrics& metrics : workers_) page_.add(name, help, metrics.*histogram, labels_);
  }
  void waits(const char* name, const char* help, const Histogram EngineMetrics::Waits::*histogram) {
    for (const EngineMetrics& metrics : workers_) {
      for (const EngineMetrics::Waits& of_class : metrics.waits) page_.add(name, help, of_class.*histogram, labels_);
    }
  }
  void finished(const char* label, std::initializer_list<FinishReason> reasons) {
    for (const EngineMetrics& metrics : workers_) {
      for (const FinishReason reason : reasons) {
        page_.add("vllm:request_success_total", "Requests that ended, by reason.",
                  metrics.requests_finished[static_cast<std::size_t>(reason)],
                  labels_ + ",finished_reason=\"" + label + '"');
      }
    }
  }

 private:
  MetricsPage& page_;
  const Workers& workers_;
  const std::string labels_;
};

}  // namespace

void add_vllm_metrics(MetricsPage& page, const Workers& workers, const std::string& model_name, TokenCount cells) {
  const std::string model = model_label(model_name);
  page.keep_buckets(true);
  Board board(page, workers, model);
  board.gauge("vllm:num_requests_running", "Requests that hold a slot.", &running);
  board.gauge("vllm:num_requests_waiting", "Requests that wait for a slot.", &waiting);
  board.gauge("vllm:kv_cache_usage_perc", "Share of the KV cells that hold something, 0 to 1.", &kv_usage);
  page.add_computed(
      "vllm:cache_config_info", "The KV cache: a block is one cell.", [] { return 1.0; },
      model + ",block_size=\"1\",num_gpu_blocks=\"" + std::to_string(cells) + '"');
  board.counter("vllm:num_preemptions_total", "Requests that lost their slot for a while.",
                &EngineMetrics::preemptions);
  // Those that were cached count as well.
  board.counter("vllm:prompt_tokens_total", "Tokens of prompts.", &EngineMetrics::prompt_tokens);
  board.counter("vllm:prompt_tokens_total", "Tokens of prompts.", &EngineMetrics::cached_tokens);
  board.counter("vllm:prompt_tokens_cached_total", "Tokens of prompts that were not computed again.",
                &EngineMetrics::cached_tokens);
  board.counter("vllm:generation_tokens_total", "Tokens generated.", &EngineMetrics::generation_tokens);
  board.counter("vllm:prefix_cache_queries_total", "Tokens looked for in the prefix cache.",
                &EngineMetrics::prompt_tokens);
  board.counter("vllm:prefix_cache_queries_total", "Tokens looked for in the prefix cache.",
                &EngineMetrics::cached_tokens);
  board.counter("vllm:prefix_cache_hits_total", "… and found there.", &EngineMetrics::cached_tokens);
  board.counter("vllm:spec_decode_num_drafts_total", "Steps that checked draft tokens, for each request.",
                &EngineMetrics::spec_steps);
  board.counter("vllm:spec_decode_num_draft_tokens_total", "Draft tokens that were checked.",
                &EngineMetrics::draft_tokens);
  board.counter("vllm:spec_decode_num_accepted_tokens_total", "… and were right.", &EngineMetrics::accepted_tokens);
  board.finished("stop", {FinishReason::stop});
  board.finished("length", {FinishReason::length, FinishReason::deadline});
  board.finished("abort", {FinishReason::cancelled});
  board.finished("error", {FinishReason::error});
  board.waits("vllm:time_to_first_token_seconds", "Arrival to the first token.",
              &EngineMetrics::Waits::time_to_first_token_seconds);
  board.waits("vllm:inter_token_latency_seconds", "Time between two tokens of a request.",
              &EngineMetrics::Waits::inter_token_seconds);
  board.histogram("vllm:e2e_request_latency_seconds", "Arrival to the end.", &EngineMetrics::request_seconds);
  board.waits("vllm:request_queue_time_seconds", "Arrival to the first step.", &EngineMetrics::Waits::queue_seconds);
  board.histogram("vllm:request_prefill_time_seconds", "First step to the first token.",
                  &EngineMetrics::prefill_seconds);
  board.histogram("vllm:request_decode_time_seconds", "First token to the last.", &EngineMetrics::decode_seconds);
  board.histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", &EngineMetrics::request_prompt_tokens);
  board.histogram("vllm:request_generation_tokens", "Tokens of an answer.", &EngineMetrics::request_generation_tokens);
  board.histogram("vllm:iteration_tokens_total", "Rows of a step.", &EngineMetrics::step_tokens);
  page.keep_buckets(false);
  add_adapters(page, workers);
}

void add_llama_server_metrics(MetricsPage& page, const Workers& workers) {
  const auto prompt = [](const Workers& w) {
    return sum(w, [](const EngineMetrics& m) { return m.prompt_tokens.value(); });
  };
  const auto predicted = [](const Workers& w) {
    return sum(w, [](const EngineMetrics& m) { return m.generation_tokens.value(); });
  };
  const auto steps = [](const Workers& w) {
    return sum(w, [](const EngineMetrics& m) { return m.decode_steps.value() + m.prefill_steps.value(); });
  };
  const auto seconds_of = [](const Workers& w, const Histogram EngineMetrics::*steps_of_kind) {
    return sum(w, [steps_of_kind](const EngineMetrics& m) { return (m.*steps_of_kind).sum(); });
  };
  const auto reading = [seconds_of](const Workers& w) { return seconds_of(w, &EngineMetrics::prefill_step_seconds); };
  const auto writing = [seconds_of](const Workers& w) { return seconds_of(w, &EngineMetrics::decode_step_seconds); };

  Board board(page, workers, {});
  const auto computed_counter = [&](const char* name, const char* help, auto read) {
    page.add_computed_counter(name, help, [&workers, read] { return read(workers); });
  };
  const auto computed = [&](const char* name, const char* help, auto read) {
    page.add_computed(name, help, [&workers, read] { return read(workers); });
  };
  board.counter("llamacpp:prompt_tokens_total", "Prompt tokens computed.", &EngineMetrics::prompt_tokens);
  board.counter("llamacpp:prompt_tokens_cached_total", "Tokens of prompts that were not computed again.",
                &EngineMetrics::cached_tokens);
  computed_counter("llamacpp:prompt_seconds_total", "Time of steps that read prompts.", reading);
  board.counter("llamacpp:tokens_predicted_total", "Tokens generated.", &EngineMetrics::generation_tokens);
  computed_counter("llamacpp:tokens_predicted_seconds_total", "Time of steps that generate.", writing);
  computed_counter("llamacpp:n_decode_total", "Calls of llama_decode.", steps);
  computed("llamacpp:prompt_tokens_seconds", "Prompt tokens a second of reading, since the page was read before.",
           [prompt, reading, pace = std::make_shared<Pace>()](const Workers& w) {
             return pace->since_last(prompt(w), reading(w));
           });
  computed("llamacpp:predicted_tokens_seconds", "Tokens a second of generating, since the page was read before.",
           [predicted, writing, pace = std::make_shared<Pace>()](const Workers& w) {
             return pace->since_last(predicted(w), writing(w));
           });
  board.counter("llamacpp:spec_decode_num_drafts_total", "Steps that checked draft tokens, for each request.",
                &EngineMetrics::spec_steps);
  board.counter("llamacpp:spec_decode_num_draft_tokens_total", "Draft tokens that were checked.",
                &EngineMetrics::draft_tokens);
  board.counter("llamacpp:spec_decode_num_accepted_tokens_total", "… and were accepted.",
                &EngineMetrics::accepted_tokens);
  computed("llamacpp:requests_processing", "Requests that hold a slot.", &running);
  computed("llamacpp:requests_deferred", "Requests that wait for a slot.", &waiting);
  computed("llamacpp:n_busy_slots_per_decode", "Rows of a decode step, mean since the start.", [](const Workers& w) {
    return over(sum(w, [](const EngineMetrics& m) { return m.decode_rows.sum(); }),
                sum(w, [](const EngineMetrics& m) { return m.decode_steps.value(); }));
  });
  computed("llamacpp:n_tokens_max", "Tokens of the longest request, prompt and answer.", [](const Workers& w) {
    std::int64_t most = 0;
    for (const EngineMetrics& m : w) most = std::max(most, m.longest_sequence.value());
    return static_cast<double>(most);
  });
}

}  // namespace chasqui
