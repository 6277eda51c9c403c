#include "app/capacity.h"

#include <algorithm>

#include "model/window_layers.h"

namespace chasqui {
namespace {

constexpr std::int32_t kSlotsDefault = 16;
// Fewer slots than this are not worth longer ones.
constexpr std::int32_t kSlotsWanted = 4;
// Shorter slots than this are not worth more of them. Also what a model is taken to be trained with that does not say.
constexpr TokenCount kCellsLeast = 4096;
// On a GPU, whose memory is committed at once.
constexpr std::uint64_t kGpuKvBytes = 2ull << 30;

}  // namespace

std::uint64_t kv_bytes_for(std::uint64_t free_bytes, std::uint64_t weights, bool gpu,
                           std::optional<std::uint64_t> target) {
  if (target) return free_bytes - std::min(free_bytes, weights + *target);
  const std::uint64_t half = (free_bytes - std::min(free_bytes, weights)) / 2;
  return gpu ? std::min(half, kGpuKvBytes) : half;
}

ModelConfig with_capacity(ModelConfig config, const ModelInfo& info, std::uint64_t kv_bytes, std::int32_t workers) {
  const TokenCount trained = info.context_trained > 0 ? info.context_trained : kCellsLeast;
  const double formats = (bytes_per_value(config.kv_keys) + bytes_per_value(config.kv_values)) / 2;
  const double of_f16 = formats / bytes_per_value(KvType::f16);
  const auto cell_bytes = static_cast<std::uint64_t>(static_cast<double>(info.kv_bytes_per_cell) * of_f16);
  const KvSize size =
      kv_size(cell_bytes, info.layers, config.swa_full ? 0 : info.window_layers, info.sliding_window, config.rows_max);
  const TokenCount cells_least = config.cells_least > 0 ? config.cells_least : kCellsLeast;
  const std::uint64_t states = static_cast<std::uint64_t>(1 + config.rollback) * info.state_bytes_per_slot;
  const auto fit = [&](std::int32_t slots, TokenCount each) {
    return static_cast<std::uint64_t>(slots) * (size.of(static_cast<std::uint64_t>(each)) + states) <= kv_bytes;
  };
  if (config.slots == 0) {
    config.slots = kSlotsDefault;
    const TokenCount least = std::min(trained, cells_least);
    while (config.cells == 0 && config.slots > 1 && !fit(config.slots, config.slots > kSlotsWanted ? trained : least)) {
      config.slots /= 2;
    }
    config.slots = std::max(workers, config.slots / workers * workers);
  }
  if (config.cells == 0 && config.unified && config.cells_per_slot_max > 0) {
    config.cells = config.slots * std::min(config.cells_per_slot_max, trained);
  }
  if (config.cells == 0) {
    const std::uint64_t of_slot = kv_bytes / static_cast<std::uint64_t>(config.slots);
    const std::uint64_t each = size.cells_in(of_slot - std::min(of_slot, states));
    const TokenCount least = std::min(trained, cells_least);
    const auto per_slot = static_cast<TokenCount>(
        std::clamp(each, static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(trained)));
    config.cells = config.slots * per_slot;
  }
  config.rows_max = std::max(config.rows_max, config.slots);
  return config;
}

Result<ModelConfig> part_of_worker(ModelConfig whole, std::int32_t workers, std::int32_t cores, std::int32_t models) {
  // What a sequence needs at least: a token of its prompt, and one of its answer.
  if (whole.cells < 2 * whole.slots) {
    return invalid_field("--ctx-size", "--ctx-size " + std::to_string(whole.cells) + " is too little for " +
                                           std::to_string(whole.slots) + " slots: see --parallel");
  }
  if (workers == 1 && models == 1) return whole;
  if (whole.slots % workers != 0) {
    return invalid_field("--parallel", "--parallel " + std::to_string(whole.slots) +
                                           " cannot be divided evenly among --workers " + std::to_string(workers) +
                                           ": it must be a multiple of it");
  }
  ModelConfig part = whole;
  part.slots /= workers;
  part.cells /= workers;
  if (part.threads == 0 && !part.cores) part.threads = std::max(1, cores / (workers * models));
  return part;
}

std::int32_t outputs_for(std::int32_t slots, TokenCount draft_tokens_max) {
  // With more rows than that a step is busy computing, and no draft token is worth its row.
  constexpr std::int32_t kRowsForDraftTokens = 64;
  return slots + std::min(slots * draft_tokens_max, kRowsForDraftTokens);
}

}  // namespace chasqui
