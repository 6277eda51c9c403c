#include "app/model_memory.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "app/capacity.h"
#include "app/draft_models.h"
#include "app/rpc_peers.h"
#include "app/settings.h"
#include "cli/inspect.h"
#include "cli/machine.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace {

// Rows of activations that libllama's graph holds at once, of the widest tensor and of the others.
constexpr std::uint64_t kWideRows = 2;
constexpr std::uint64_t kNarrowRows = 8;
constexpr std::uint64_t kFloat = 4;
constexpr std::uint64_t kBeside = std::uint64_t{8} << 20;  // the vocabulary, and what else has no known size

// Of a step of one worker.
std::uint64_t step_bytes(const GgufSummary& model, const ModelConfig& part) {
  const auto rows = static_cast<std::uint64_t>(part.rows_max);
  const auto width = static_cast<std::uint64_t>(model.embedding_length);
  const auto outputs = static_cast<std::uint64_t>(part.outputs_max);
  return rows * width * kFloat * (4 * kWideRows + kNarrowRows) + 2 * outputs * model.vocabulary * kFloat;
}

std::uint64_t of_context(const GgufSummary& model, const ModelConfig& whole, std::int32_t workers, TokenCount drafts) {
  ModelConfig part = whole;
  part.outputs_max = outputs_for(whole.slots / std::max(workers, 1), drafts);
  return cli::memory_of_plan(model, whole) + static_cast<std::uint64_t>(workers) * step_bytes(model, part);
}

// libllama keeps tensors of these formats a second time, in an order that CPUs compute faster with; the file's own
// are mapped as long as the model is there.
std::uint64_t reordered_bytes(const ServeConfig& config, const GgufSummary& model, bool gpu) {
  if (gpu || !config.use_mmap) return 0;
  std::uint64_t out = 0;
  for (const char* const format : {"Q4_0", "Q4_K", "IQ4_NL"}) {
    if (const auto found = model.formats.find(format); found != model.formats.end()) out += found->second;
  }
  return out;
}

// The table of tokens is in the file, with a bit for each number of it at least. What says otherwise is broken, and
// loading it tells how.
bool plausible(const GgufSummary& model) {
  return static_cast<std::uint64_t>(model.embedding_length) * std::max<std::uint64_t>(model.vocabulary, 1) / 8 <=
         model.tensor_bytes;
}

std::uint64_t projector_bytes(const ServeConfig& config) {
  const auto media = media_options(config.media, config.model_path, !config.hf_repo.empty());
  if (!media || media->path.empty()) return 0;
  const auto projector = summarize_gguf(media->path);
  return projector ? projector->tensor_bytes + kBeside : 0;
}

}  // namespace

Result<std::uint64_t> read_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  std::erase(unit, ' ');
  for (char& c : unit) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  constexpr std::string_view kUnits = "KMGT";
  std::size_t power = 0;
  if (!unit.empty() && kUnits.find(unit.front()) != std::string_view::npos) {
    power = kUnits.find(unit.front()) + 1;
    unit.erase(0, 1);
  }
  const bool known = unit.empty() || unit == "B" || (power > 0 && unit == "IB");
  for (std::size_t i = 0; i < power; ++i) number *= 1024;
  if (error != std::errc() || !known || !(number >= 1 && number < 0x1p60)) {
    return invalid_field("", "must be a number of bytes, which may end in K, M, G or T (of 1024), as 24G");
  }
  return static_cast<std::uint64_t>(number);
}

std::uint64_t models_memory(const ServeConfig& config) {
  if (config.models_memory > 0) return config.models_memory;
  return (cli::look_at_machine().usable_bytes() + memory_of_peers().total_bytes) / 4 * 3;
}

std::uint64_t cell_bytes_of(const ServeConfig& config, std::uint64_t free_bytes, std::uint64_t weights, bool gpu) {
  std::optional<std::uint64_t> target;
  if (config.fit_target_mib) target = static_cast<std::uint64_t>(*config.fit_target_mib) << 20;
  const std::uint64_t most = config.on_demand ? std::min(free_bytes, models_memory(config)) : free_bytes;
  return kv_bytes_for(most, weights, gpu, target) / static_cast<std::uint64_t>(config.sharers);
}

std::uint64_t memory_needed(const ServeConfig& config, const GgufSummary& model, const GgufSummary* draft, bool gpu) {
  const std::uint64_t cells = cell_bytes_of(config, models_memory(config), model.tensor_bytes, gpu);
  ModelConfig asked = config.model;
  asked.rollback = wanted_rollback(config.speculation, model.trims_anywhere());
  const ModelConfig whole = with_capacity(asked, cli::info_of(model), cells, config.workers);
  const TokenCount drafts = config.speculation.draft_tokens_max();
  std::uint64_t out = kBeside + of_context(model, whole, config.workers, drafts) + reordered_bytes(config, model, gpu);
  if (draft != nullptr) out += of_context(*draft, whole, config.workers, 0) + reordered_bytes(config, *draft, gpu);
  return out;
}

std::uint64_t memory_needed(const ServeConfig& config) {
  if (config.engine == EngineKind::sim || config.model_path.empty()) return 0;
  const auto model = summarize_gguf(config.model_path);
  if (!model || !plausible(*model)) return 0;
  const std::string& file = config.speculation.draft_model;
  const auto draft = file.empty() ? Result<GgufSummary>(GgufSummary()) : summarize_gguf(file);
  const bool drafts = !file.empty() && draft;
  return memory_needed(config, *model, drafts ? &*draft : nullptr, offloads_to_gpu()) + projector_bytes(config);
}

Result<void> check_fits(const ServeConfig& config, std::uint64_t needed, std::uint64_t beside) {
  const std::uint64_t allowed = models_memory(config);
  if (needed == 0 || needed + beside <= allowed) return {};
  const std::string stays =
      beside == 0 ? std::string() : ", " + cli::bytes_in_words(beside) + " of which are of models that stay loaded";
  return Error{ErrorCode::not_supported,
               "the model " + names_of_model(config).front() + " needs " + cli::bytes_in_words(needed) +
                   " of memory, and --models-memory allows " + cli::bytes_in_words(allowed) + stays +
                   ": give it more, or the model a smaller --ctx-size or --parallel",
               "model"};
}

}  // namespace chasqui
