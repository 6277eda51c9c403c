// A Model without weights (`--engine sim`): it answers at a programmable speed, in word salad that depends on every
// token in its slot (model/sim_words.h), so that a wrong position, a forgotten trim or a mixed-up slot changes the
// answer or trips a CHECK; or with another SimVoice, what tests want it to say (model/forced_voice.h). Used by tests,
// by the simulator (on virtual time) and to try the server where there is no model. Owned by one worker and used on its
// thread only.
//
// The next token is what the voice says of the slot's history, given as one dominant logit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "model/model.h"
#include "model/model_config.h"
#include "model/sim_tokenizer.h"
#include "model/sim_voice.h"

namespace chasqui {

struct SimOptions {
  // What one decode() costs.
  Duration step = microseconds(200);
  Duration decode_row = microseconds(20);
  Duration prefill_row = microseconds(5);
  // Lets that much time pass: a server sleeps, tests advance a ManualClock. Empty: a decode costs nothing.
  std::function<void(Duration)> spend = {};

  std::uint64_t seed = 1;
  std::int32_t answer_tokens = 64;  // mean length of an answer
  TokenCount context = 4096;        // cells of a slot when ModelConfig::cells is 0
};

class SimModel : public Model {
 public:
  SimModel(const std::shared_ptr<const SimTokenizer>& tokenizer, const ModelConfig& config, SimOptions options);
  SimModel(TokenCount vocabulary, std::shared_ptr<const SimVoice> voice, const ModelConfig& config, SimOptions options);

  const ModelShape& shape() const override { return shape_; }
  DecodeStatus decode(const Batch& batch) override;
  std::span<float> logits(std::int32_t row) override;
  void trim(SlotId slot, TokenCount keep) override;
  void reuse(SlotId slot, TokenCount keep) override;
  void shift(SlotId slot, TokenCount from, TokenCount to) override;
  void move(SlotId from, SlotId to) override;
  void exchange(SlotId a, SlotId b) override;
  KvSnapshotPtr copy_out(SlotId slot, TokenCount from, TokenCount to) override;
  bool restore(SlotId slot, const KvSnapshot& snapshot, TokenCount keep) override;
  bool restore_piece(SlotId slot, const KvSnapshot& snapshot, TokenCount keep, TokenCount from, TokenCount to) override;
  bool copy_piece(SlotId source, SlotId slot, TokenCount keep, TokenCount from, TokenCount to) override;
  // The time of the step is spent all the same.
  void request_abort() override { abort_.store(true, std::memory_order_relaxed); }
  void clear_abort() override { abort_.store(false, std::memory_order_relaxed); }

  // The decode() that is the `calls`-th from now (1: the next one) returns `status` and changes nothing.
  void fail_decode(std::uint64_t calls, DecodeStatus status);

  // For tests.
  std::span<const Token> history(SlotId slot) const { return slots_[static_cast<std::size_t>(slot.value)].tokens; }
  TokenCount cells_used() const { return cells_used_; }
  std::uint64_t decodes() const { return decodes_; }

 private:
  // hashes[i] covers tokens[0 … i], so that trimming needs no recomputation.
  struct Slot {
    std::uint64_t adapters = 0;
    std::vector<Token> tokens;
    std::vector<std::uint64_t> hashes;
    std::size_t prompt = 0;  // tokens before the first that was asked for
  };

  Slot& slot_of(SlotId id);
  void check(const Batch& batch);
  bool fits(const Batch& batch);
  bool takes_piece(SlotId id, TokenCount keep, TokenCount from, TokenCount to);
  void append(Slot& slot, Token token, std::uint64_t adapters);
  void write_logits(const Slot& slot, std::span<float> row) const;

  // Constant after construction.
  const std::shared_ptr<const SimVoice> voice_;
  const SimOptions options_;
  ModelShape shape_;

  std::atomic<bool> abort_{false};
  std::vector<Slot> slots_;
  TokenCount cells_used_ = 0;
  std::vector<float> logits_;         // a row of the vocabulary for each row of a batch
  std::vector<std::uint8_t> output_;  // which rows of the last decode have logits
  std::uint64_t decodes_ = 0;
  std::uint64_t fail_at_ = 0;
  DecodeStatus fail_status_ = DecodeStatus::ok;
};

}  // namespace chasqui
