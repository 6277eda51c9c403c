#include "engine/compat_metrics.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/json_writer.h"

namespace chasqui {
namespace {

using MetricsOfWorkers = std::deque<EngineMetrics>;

constexpr std::size_t kModelNameMax = 32;
constexpr std::size_t kAdapterListMax = 1024;
constexpr std::size_t kLabelNames = 64;  // bytes of labels beside the lists
// Cells have no blocks. Endpoint pickers reckon with blocks of 64 tokens at least, whatever a server says.
constexpr TokenCount kBlockCells = 64;

}  // namespace

// Prometheus escapes as JSON does what a model's name may hold.
std::string model_label(std::string_view label, std::string name) {
  if (name.size() > kModelNameMax) {
    std::size_t end = kModelNameMax;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;  // not inside a character
    name.resize(end);
  }
  std::erase_if(name, [](unsigned char c) { return c < ' '; });
  std::string out(label);
  out += '=';
  append_json_string(out, name);
  return out;
}

namespace {

// Names of the adapters that requests want, as vLLM has them: "a,b", each as the requests say it, since endpoint
// pickers look for what a request says. What does not fit is left out.
std::string adapters_wanted(const MetricsOfWorkers& workers, const Gauge EngineMetrics::AdapterWish::*wanted,
                            const std::string& model_name) {
  std::string names;
  const auto add = [&](std::size_t i, const EngineMetrics::AdapterWish EngineMetrics::AdapterSteps::*said,
                       const std::string& name) {
    const auto wants = [&](const EngineMetrics& m) { return (m.adapter_steps[i].*said.*wanted).value() > 0; };
    if (std::ranges::none_of(workers, wants)) return;
    std::string quoted;
    append_json_escaped(quoted, name);
    if (names.size() + quoted.size() + 1 > kAdapterListMax) return;
    if (!names.empty()) names += ',';
    names += quoted;
  };
  for (std::size_t i = 0; i < workers.front().adapter_steps.size(); ++i) {
    const std::string& name = workers.front().adapter_steps[i].name;
    if (name.empty()) continue;
    add(i, &EngineMetrics::AdapterSteps::by_name, name);
    add(i, &EngineMetrics::AdapterSteps::in_full, model_name + ':' + name);
  }
  return names;
}

}  // namespace

void add_vllm_adapters(MetricsPage& page, const MetricsOfWorkers& workers, const std::string& model_name) {
  const auto labels = [&workers, model_name] {
    // All that are loaded can be in use at once.
    return "max_lora=\"" + std::to_string(workers.front().named_adapters()) + "\",running_lora_adapters=\"" +
           adapters_wanted(workers, &EngineMetrics::AdapterWish::running, model_name) + "\",waiting_lora_adapters=\"" +
           adapters_wanted(workers, &EngineMetrics::AdapterWish::waiting, model_name) + '"';
  };
  page.add_labelled(
      "vllm:lora_requests_info", "Adapters that running and waiting requests want; the value is the time.",
      [] { return static_cast<double>(RealClock().unix_seconds()); },
      R"(max_lora="",running_lora_adapters="",waiting_lora_adapters="")", labels, 2 * kAdapterListMax + kLabelNames);
}

namespace {

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
double sum(const MetricsOfWorkers& workers, Read read) {
  double total = 0;
  for (const EngineMetrics& metrics : workers) total += static_cast<double>(read(metrics));
  return total;
}

double kv_usage(const MetricsOfWorkers& workers) {
  return over(sum(workers, [](const EngineMetrics& m) { return m.kv_cells_used.value(); }),
              sum(workers, [](const EngineMetrics& m) { return m.kv_cells_total.value(); }));
}

}  // namespace

void add_vllm_metrics(MetricsPage& page, const MetricsOfWorkers& workers, const std::string& model_name,
                      TokenCount cells) {
  const std::string model = model_label("model_name", model_name);
  page.keep_buckets(true);
  for (const EngineMetrics& metrics : workers) metrics.add_others_to(page, "vllm:", model);
  page.keep_buckets(false);
  page.add_computed(
      "vllm:kv_cache_usage_perc", "Share of the KV cells that hold something, 0 to 1.",
      [&workers] { return kv_usage(workers); }, model);
  page.add_computed(
      "vllm:cache_config_info", "The KV cache: a block counts as 64 cells.", [] { return 1.0; },
      model + ",block_size=\"" + std::to_string(kBlockCells) + "\",num_gpu_blocks=\"" +
          std::to_string(cells / kBlockCells) + '"');
  if (workers.front().named_adapters() > 0) add_vllm_adapters(page, workers, model_name);
}

void add_llama_server_metrics(MetricsPage& page, const MetricsOfWorkers& workers) {
  const auto total = [&workers](auto EngineMetrics::*counted) {
    return sum(workers, [counted](const EngineMetrics& m) { return (m.*counted).value(); });
  };
  const auto reading = [&workers] {
    return sum(workers, [](const EngineMetrics& m) { return m.prefill_step_seconds.sum(); });
  };
  const auto writing = [&workers] {
    return sum(workers, [](const EngineMetrics& m) { return m.decode_step_seconds.sum(); });
  };
  for (const EngineMetrics& metrics : workers) metrics.add_others_to(page, "llamacpp:");
  page.add_computed_counter("llamacpp:prompt_seconds_total", "Time of steps that prefill prompts.", reading);
  page.add_computed_counter("llamacpp:tokens_predicted_seconds_total", "Time of steps that generate.", writing);
  page.add_computed("llamacpp:prompt_tokens_seconds",
                    "Prompt tokens a second of prefill, since the page was read before.",
                    [total, reading, pace = std::make_shared<Pace>()] {
                      return pace->since_last(total(&EngineMetrics::prompt_tokens), reading());
                    });
  page.add_computed("llamacpp:predicted_tokens_seconds",
                    "Tokens a second of generating, since the page was read before.",
                    [total, writing, pace = std::make_shared<Pace>()] {
                      return pace->since_last(total(&EngineMetrics::generation_tokens), writing());
                    });
  page.add_computed("llamacpp:n_busy_slots_per_decode", "Rows of a decode step, mean since the start.",
                    [&workers, total] {
                      return over(sum(workers, [](const EngineMetrics& m) { return m.decode_rows.sum(); }),
                                  total(&EngineMetrics::decode_steps));
                    });
  page.add_computed("llamacpp:n_tokens_max", "Tokens of the longest request, prompt and answer.", [&workers] {
    std::int64_t most = 0;
    for (const EngineMetrics& m : workers) most = std::max(most, m.longest_sequence.value());
    return static_cast<double>(most);
  });
}

}  // namespace chasqui
