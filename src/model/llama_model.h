// The Model that libllama computes: one llama_context with its own compute threads. Owned by one worker and used on
// its thread, except request_abort() and clear_abort(), which any thread may call.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "model/llama_weights.h"
#include "model/model.h"
#include "model/model_config.h"
#include "model/thread_choice.h"

struct llama_batch;
struct llama_context;
struct ggml_threadpool;

namespace chasqui {

class LlamaModel final : public Model {
 public:
  // What shape() says may differ from the configuration: libllama rounds contexts to multiples of 256 cells.
  static Result<std::unique_ptr<LlamaModel>> make(WeightsPtr weights, const ModelConfig& config);

  ~LlamaModel() override;
  LlamaModel(const LlamaModel&) = delete;
  LlamaModel& operator=(const LlamaModel&) = delete;

  const ModelShape& shape() const override { return shape_; }
  DecodeStatus decode(const Batch& batch) override;
  std::span<float> logits(std::int32_t row) override;
  void trim(SlotId slot, TokenCount keep) override;

  // Ends the running decode, and every later one, within milliseconds with DecodeStatus::aborted, until cleared.
  // Without effect on models that cannot trim anywhere: their state could not be brought back.
  void request_abort() { abort_.store(true, std::memory_order_relaxed); }
  void clear_abort() { abort_.store(false, std::memory_order_relaxed); }

  // Compute threads of the last decode; 0 when they do not vary (ModelConfig::adapt_threads).
  std::int32_t threads() const { return threads_; }

  const LlamaWeights& weights() const { return *weights_; }

 private:
  explicit LlamaModel(WeightsPtr weights);
  Result<void> open(const ModelConfig& config);
  Result<void> warm_up();
  llama_batch fill_arrays(const Batch& batch);
  void use_threads(std::int32_t threads);
  DecodeStatus finish(int status, const Batch& batch);
  void roll_back(const Batch& batch);

  // Constant after make().
  const WeightsPtr weights_;
  ModelShape shape_;
  llama_context* context_ = nullptr;
  ggml_threadpool* pool_ = nullptr;
  RealClock clock_;

  std::atomic<bool> abort_{false};
  // With ModelConfig::adapt_threads: for batches of one row and for larger ones.
  std::optional<ThreadChoice> one_row_;
  std::optional<ThreadChoice> more_rows_;
  std::int32_t threads_ = 0;  // of the last decode

  // The llama_batch of the running decode, as wide as rows_max.
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> slots_;
  std::vector<std::int32_t> slot_counts_;
  std::vector<std::int32_t*> slot_pointers_;
  std::vector<std::int8_t> outputs_;
};

}  // namespace chasqui
