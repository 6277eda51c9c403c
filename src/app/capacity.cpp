#include "app/capacity.h"

#include <algorithm>

namespace chasqui {
namespace {

constexpr std::int32_t kSlotsDefault = 16;
// A slot of a model with a huge trained context is still only this long unless -c asks for more.
constexpr TokenCount kCellsPerSlotDefault = 4096;
// What the KV cache may take when nobody said how large it should be.
constexpr std::uint64_t kKvBytesDefault = 2ull << 30;

}  // namespace

ModelConfig with_capacity(ModelConfig config, const ModelInfo& info, std::int32_t workers) {
  const TokenCount trained = info.context_trained > 0 ? info.context_trained : kCellsPerSlotDefault;
  const TokenCount per_slot = std::min(trained, kCellsPerSlotDefault);
  if (config.slots == 0) {
    config.slots = kSlotsDefault;
    const std::uint64_t slot_bytes =
        std::max<std::uint64_t>(1, info.kv_bytes_per_cell) * static_cast<unsigned>(per_slot);
    while (config.cells == 0 && config.slots > 1 &&
           slot_bytes * static_cast<unsigned>(config.slots) > kKvBytesDefault) {
      config.slots /= 2;
    }
    config.slots = std::max(workers, config.slots / workers * workers);
  }
  if (config.cells == 0) config.cells = config.slots * per_slot;
  config.rows_max = std::max(config.rows_max, config.slots);
  return config;
}

Result<ModelConfig> part_of_worker(ModelConfig whole, std::int32_t workers, std::int32_t cores) {
  // What a sequence needs at least: a token of its prompt, and one of its answer.
  if (whole.cells < 2 * whole.slots) {
    return invalid_field("--ctx-size", "--ctx-size " + std::to_string(whole.cells) + " is too little for " +
                                           std::to_string(whole.slots) + " slots: see --parallel");
  }
  if (workers == 1) return whole;
  if (whole.slots % workers != 0) {
    return invalid_field("--parallel", "--parallel " + std::to_string(whole.slots) +
                                           " cannot be divided evenly among --workers " + std::to_string(workers) +
                                           ": it must be a multiple of it");
  }
  ModelConfig part = whole;
  part.slots /= workers;
  part.cells /= workers;
  if (part.threads == 0) part.threads = std::max(1, cores / workers);
  return part;
}

std::int32_t outputs_for(std::int32_t slots, TokenCount guesses_max) {
  // With more rows than that a step is busy computing, and no guess is worth its row.
  constexpr std::int32_t kRowsForGuesses = 64;
  return slots + std::min(slots * guesses_max, kRowsForGuesses);
}

}  // namespace chasqui
