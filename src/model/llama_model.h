// The Model that libllama computes: one llama_context with its own compute threads. Owned by one worker and used on
// its thread, except request_abort() and clear_abort(), which any thread may call.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "model/core_share.h"
#include "model/llama_heads.h"
#include "model/llama_kv_layout.h"
#include "model/llama_media_encoder.h"
#include "model/llama_row_work.h"
#include "model/llama_rows.h"
#include "model/llama_threads.h"
#include "model/llama_weights.h"
#include "model/model.h"
#include "model/model_config.h"
#include "model/slot_positions.h"
#include "model/thread_choice.h"

struct llama_batch;
struct llama_context;
struct ggml_threadpool;

namespace chasqui {

class LlamaModel final : public Model {
 public:
  // What shape() says may differ from the configuration: libllama rounds contexts to multiples of 256 cells.
  // `clock` outlives the model; without one it is the real one.
  static Result<std::unique_ptr<LlamaModel>> make(WeightsPtr weights, const ModelConfig& config,
                                                  const Clock* clock = nullptr);

  ~LlamaModel() override;
  LlamaModel(const LlamaModel&) = delete;
  LlamaModel& operator=(const LlamaModel&) = delete;

  const ModelShape& shape() const override { return shape_; }
  DecodeStatus decode(const Batch& batch) override;
  Result<bool> encode(const MediaUnit& unit, std::uint32_t tenant) override;
  std::shared_ptr<MediaEncoder> encoder() const override { return media_; }
  std::span<float> logits(std::int32_t row) override;
  std::size_t row_threads() const override { return static_cast<std::size_t>(std::max(threads_, 1)); }
  void for_each_row(std::size_t count, RowJob& job) override { row_work_.run(pool_, threads_, count, job); }
  void trim(SlotId slot, TokenCount keep) override;
  void shift(SlotId slot, TokenCount from, TokenCount to) override;
  void move(SlotId from, SlotId to) override;
  void exchange(SlotId a, SlotId b) override;
  KvSnapshotPtr copy_out(SlotId slot, TokenCount from, TokenCount to) override;
  bool restore(SlotId slot, const KvSnapshot& snapshot, TokenCount keep) override;
  bool restore_piece(SlotId slot, const KvSnapshot& snapshot, TokenCount keep, TokenCount from, TokenCount to) override;
  bool copy_piece(SlotId source, SlotId slot, TokenCount keep, TokenCount from, TokenCount to) override;
  void request_abort() override { abort_.store(true, std::memory_order_relaxed); }
  void clear_abort() override { abort_.store(false, std::memory_order_relaxed); }
  std::uint64_t operations() const override {
    return operations_.load(std::memory_order_relaxed) + (media_ ? media_->operations() : 0);
  }
  ComputeStats compute_stats() const override { return {threads_, cuts_, media_ ? media_->bytes() : 0}; }
  Heads* heads() override { return heads_.get(); }

  const LlamaWeights& weights() const { return *weights_; }

 private:
  LlamaModel(WeightsPtr weights, const Clock& clock);
  Result<void> open(const ModelConfig& config);
  Result<void> open_heads(const ModelConfig& config);
  Result<void> warm_up(const ModelConfig& config);
  Batch warm_up_batch(std::int32_t rows) const;
  void find_threads(const ModelConfig& config, TimePoint start);
  bool recall_threads(const ThreadFigures& figures);
  Duration measure_threads(const Batch& batch, Duration first, TimePoint end, ThreadFigures& figures);
  bool apply(const AdapterSet* adapters);
  ThreadPlan plan(const Batch& batch);
  void use_threads(std::int32_t threads, bool several_rows);
  const float* embeddings_of(const Batch& batch) const;
  static bool has_several_dimensions(const LlamaWeights& weights);
  bool goes_on_inside(const Batch& batch) const;
  void place(const Batch& batch, llama_batch& arrays);
  void place_unit(const Batch& batch, llama_batch& arrays);
  void note_positions(const Batch& batch);
  DecodeStatus decode_as(ThreadPlan plan, const Batch& batch);
  int compute(const llama_batch& arrays, const ThreadPlan& plan, TimePoint start);
  static bool should_end(void* model);
  DecodeStatus finish(int status, const Batch& batch);
  bool keep_state(const Batch& batch);
  bool roll_back(const Batch& batch);
  bool bring_state_back(SlotId slot);
  KvSnapshotPtr copy_blocks(SlotId slot, TokenCount from, TokenCount to);
  const LlamaKvLayout::Place* place_for(SlotId slot, TokenCount keep, TokenCount from);
  void changes(SlotId slot);
  bool look_at(SlotId slot);
  bool move_by_copy(SlotId from, SlotId to);
  TokenCount held(SlotId slot) const;
  SlotPositions& positions_of(SlotId slot) { return positions_[static_cast<std::size_t>(slot.value)]; }
  const SlotPositions& positions_of(SlotId slot) const { return positions_[static_cast<std::size_t>(slot.value)]; }
  // The slot holds nothing afterwards.
  void empty(SlotId slot);

  // Constant after make().
  const WeightsPtr weights_;
  const Clock& clock_;
  ModelShape shape_;
  llama_context* context_ = nullptr;
  std::unique_ptr<LlamaThreads> compute_threads_;
  std::int32_t fixed_one_row_ = 1;    // compute threads where there is no choice
  std::int32_t fixed_more_rows_ = 1;  // … for more than one row

  std::atomic<bool> abort_{false};
  std::atomic<std::uint64_t> operations_{0};
  // Of the running decode.
  TimePoint deadline_ = kNever;
  bool cut_ = false;                // it was ended at the deadline
  bool uncut_ = false;              // it is to be computed to its end
  bool cuttable_ = false;           // it may be ended, since its slots can be brought back
  std::atomic<bool> ended_{false};  // … or on request: what libllama says about it is no error

  std::optional<LlamaRows> rows_;             // of the running decode; there once it is open
  std::unique_ptr<LlamaHeads> heads_;         // with ModelConfig::heads
  std::shared_ptr<LlamaMediaEncoder> media_;  // null: it reads text alone
  EncodedMediaPtr encoded_;                   // the unit of the next decode, or of the last one that had any
  Checksum encoded_unit_{};
  std::uint32_t encoded_tenant_ = 0;
  bool several_dimensions_ = false;             // of its positions (M-RoPE)
  std::vector<SlotPositions> positions_;        // of each slot
  std::vector<std::int32_t> unit_positions_;    // of the running decode: one dimension behind the other
  std::shared_ptr<CoreShare> cores_;            // null: all are its own
  bool keeps_to_part_ = false;                  // --threads does not say how many
  std::optional<CoreShare::Place> core_place_;  // a draft model computes in the time of its model, and has none
  std::optional<ThreadChoice> choice_;          // with ModelConfig::adapt_threads
  std::int32_t threads_ = 0;                    // of the last decode
  ggml_threadpool* pool_ = nullptr;             // … and theirs
  std::uint64_t cuts_ = 0;
  LlamaRowWork row_work_;

  // Of shape().kv_block, where there is one.
  std::optional<LlamaKvLayout> layout_;
  // Of the slot that was copied out last, as long as it has not changed; and of the one that was copied into.
  SlotId looked_at_;
  LlamaKvLayout::Place place_;
  SlotId filled_;
  LlamaKvLayout::Place filled_place_;
  std::vector<std::byte> piece_;     // on its way from slot to slot
  std::vector<std::byte> state_;     // of the slot of the running decode, before it; where cuttable_
  std::vector<AdapterUse> applied_;  // the adapters that the context has now
  bool counts_adapters_ = true;      // in the next decode, see LlamaWeights::adapters_lock()
};

}  // namespace chasqui
