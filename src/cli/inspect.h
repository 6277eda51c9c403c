// `chasqui inspect`: what a model is, what it needs and whether it fits here, from the head of its file alone. Pure:
// summary, settings and machine in, text or JSON out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/machine.h"
#include "cli/terminal.h"
#include "model/gguf_summary.h"
#include "model/model_config.h"
#include "model/model_info.h"

namespace chasqui::cli {

// What serving it with `config` would do: the same rules as the context's own (model/llama_model.cpp).
struct ServingPlan {
  std::int32_t slots = 0;
  std::int64_t cells = 0;
  std::int64_t cells_per_slot = 0;
  bool unified = false;
  bool trims_anywhere = true;
  bool cuts_snapshots = true;
  bool dense_slots = true;
};
ServingPlan plan_of(const GgufSummary& model, const ModelConfig& config);

struct MemoryTable {
  std::vector<std::int64_t> contexts;  // tokens of one slot
  std::vector<std::int32_t> slots;
  std::vector<std::uint64_t> bytes;  // of weights, KV and states; a row for each context
};
// Contexts up to what the model was trained with.
MemoryTable memory_table(const GgufSummary& model, const ModelConfig& config);

std::uint64_t kv_bytes_per_cell(const GgufSummary& model, const ModelConfig& config);
// Of weights, KV and states. `config` has slots and cells.
std::uint64_t memory_of_plan(const GgufSummary& model, const ModelConfig& config);
// What the rules of default sizes ask for (app/capacity).
ModelInfo info_of(const GgufSummary& model);

// `config` has slots and cells.
std::string inspect_text(const GgufSummary& model, const ModelConfig& config, const Machine& machine,
                         const Paint& paint);
std::string inspect_json(const GgufSummary& model, const ModelConfig& config, const Machine& machine);

}  // namespace chasqui::cli
