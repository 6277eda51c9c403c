// Heads that libllama computes: a context of their own beside that of the model, which llama-common feeds with the
// model's hidden states. What it knows of a slot is kept here: where the tokens that it learned of end, and of which of
// them it may still take some back. Anything else that happens to a slot makes it begin anew there, with what comes
// next. Owned by the LlamaModel; its thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/shared_lock.h"
#include "model/heads.h"
#include "model/llama_rows.h"
#include "model/llama_weights.h"
#include "model/model.h"
#include "model/model_config.h"

struct common_speculative;
struct ggml_threadpool;
struct llama_context;
struct llama_context_params;

namespace chasqui {

// EAGLE-3: of a file of their own, if they were made for a model of this shape. Errors say what does not fit.
Result<WeightsPtr> load_heads(const std::string& path, WeightsOptions options, const ModelInfo& model);

// MTP: the model has some, and libllama can compute them and take back what they hold.
bool has_usable_heads(const ModelInfo& model);

class LlamaHeads final : public Heads {
 public:
  // `target` computes `weights`, is made of `params`; both outlive the heads. REQUIRES: it takes draft tokens back
  static Result<std::unique_ptr<LlamaHeads>> make(llama_context* target, const LlamaWeights& weights,
                                                  llama_context_params params, const ModelShape& shape,
                                                  const HeadsConfig& config);
  ~LlamaHeads() override;
  LlamaHeads(const LlamaHeads&) = delete;
  LlamaHeads& operator=(const LlamaHeads&) = delete;

  TokenCount draft_tokens() const override { return draft_tokens_; }
  void learn(const Batch& batch) override;
  bool draft(Batch& batch) override;

  // The slot forgets its positions from `keep` on.
  void trim(SlotId slot, TokenCount keep);
  // The slot holds something else from now on.
  void forget(SlotId slot) { trim(slot, 0); }
  void use_threads(ggml_threadpool* pool, std::int32_t threads);

 private:
  struct Slot {
    TokenCount first = 0;             // of the batch that it learned of last
    TokenCount next = -1;             // the position after that; -1: nothing is known of what the slot holds
    bool drafted = false;             // since then
    bool ever_drafted = false;        // ever
    std::vector<Token> draft_tokens;  // the newest
  };
  struct Run {
    SlotId slot;
    TokenCount first = 0;
    TokenCount rows = 0;
  };

  LlamaHeads(const LlamaWeights& model, const HeadsConfig& config, const ModelShape& shape);
  Result<void> open(llama_context* target, llama_context_params params);
  void find_runs(const Batch& batch);
  bool in_order() const;
  bool takes_back(SlotId slot);
  // Held while the driver may decode for the first time, which is where it likes: see LlamaWeights::adapters_lock().
  std::optional<SharedLock::Reading> keep_adapters() const;
  Slot& at(SlotId slot) { return slots_[static_cast<std::size_t>(slot.value)]; }

  const std::shared_ptr<const LlamaWeights> weights_;  // of a file of their own; null: they are in the model's
  const LlamaWeights& model_;                          // whose weights outlive them
  TokenCount draft_tokens_;  // constant once it is open; a model with a layer for each has no more than layers
  const TokenCount vocabulary_;
  const bool in_any_order_;  // rows are computed as the batch has them, however many each slot has
  llama_context* context_ = nullptr;
  common_speculative* driver_ = nullptr;
  std::vector<Slot> slots_;
  LlamaRows rows_;                   // of the batch that is being learned of
  std::vector<Run> runs_;            // … slot by slot
  const std::vector<Token> prompt_;  // llama-common wants one, and does not look at it
};

}  // namespace chasqui
