// How many slots and cells to serve a model with when the flags do not say, and each worker's part of them and of the
// cores. Pure.
#pragma once

#include <optional>

#include "base/error.h"
#include "model/model_config.h"
#include "model/model_info.h"

namespace chasqui {

// What the KV cache may take at most where the user did not say: half of what is left of `free_bytes` beside weights of
// so many bytes; or all of it but `target`. Memory of host backends is committed as cells are first used; that of a GPU
// at once, hence less there.
std::uint64_t kv_bytes_for(std::uint64_t free_bytes, std::uint64_t weights, bool gpu,
                           std::optional<std::uint64_t> target = std::nullopt);

// Fills in slots, cells and rows_max where they are 0 or too small. What the user asked for is kept. A slot is as long
// as the context that the model was trained with, where `kv_bytes` has room for that in four slots at least; else it is
// shorter, or there are fewer. States count, and those that `rollback` wants beside them. Slots that the user did not
// ask for are a multiple of `workers`.
ModelConfig with_capacity(ModelConfig config, const ModelInfo& info, std::uint64_t kv_bytes, std::int32_t workers = 1);

// The part of one worker: slots and cells evenly, and of `cores`, which so many models share, where the number of
// threads is open and no CoreShare says it for each decode. Errors name the flags that do not go together.
Result<ModelConfig> part_of_worker(ModelConfig whole, std::int32_t workers, std::int32_t cores,
                                   std::int32_t models = 1);

// Rows of a batch that can have an output: one for each slot, and some more where draft tokens are checked. Each costs
// memory for a vocabulary of floats.
std::int32_t outputs_for(std::int32_t slots, TokenCount draft_tokens_max);

}  // namespace chasqui
