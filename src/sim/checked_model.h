// A model that computes nothing but a hash of what each slot holds, and checks every batch against the rules of
// core/batch.h. A token is a hash of everything before it, so a wrong position, a forgotten trim, a mixed-up slot, a
// wrong snapshot or a wrong recomputation changes the answer, which is known without a scheduler. A snapshot is the
// tokens of its slot, kTokenBytes for each, mixed with what the adapters are. Constant time for each row, no allocation
// after the first steps but for snapshots. Owned by the simulation; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_ledger.h"
#include "core/batch.h"
#include "sim/faults.h"
#include "sim/random.h"
#include "sim/sim_request.h"

namespace chasqui {

constexpr TokenCount kSimulatedVocabulary = 32'000;
// Of a simulated snapshot.
constexpr std::size_t kTokenBytes = sizeof(Token);

inline std::uint64_t extend_history(std::uint64_t history, Token token) {
  history = (history ^ static_cast<std::uint64_t>(token)) * 0x9E3779B97F4A7C15ull;
  return history ^ (history >> 32);
}
// The token after such a history.
inline Token next_token(std::uint64_t history) {
  return static_cast<Token>((history >> 20) % static_cast<std::uint64_t>(kSimulatedVocabulary));
}
// A hash of a text that can be continued.
inline std::uint64_t extend_text(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

// Appends what was told of the answer, as tokens. REQUIRES: life.request
void append_answer(const SimRequest& life, std::vector<Token>& out);

class CheckedModel {
 public:
  // `block`: ModelShape::kv_block.
  CheckedModel(const KvLedger::Layout& layout, TokenCount rows_max, TokenCount block, SimRequestTable& lives,
               Faults& faults);

  // What `status` does: anything but ok changes nothing, save that slots were trimmed, restored and moved before.
  void run(const Batch& batch, DecodeStatus status, std::uint64_t step, BatchResult& result);
  // Writes the draft tokens of a draft model, of which such a share is what will be said.
  void draft(Batch& batch, double acceptance, Random& dice) const;
  // The first restore of the next batch that has one fails.
  void fail_next_restore() { restore_fails_ = true; }
  // Its finished event was seen: no row of it may come any more.
  void ended(SimRequest& life);

  // Rows that the model holds of it.
  TokenCount length(const SimRequest& life) const {
    return life.slot.valid() ? slots_[static_cast<std::size_t>(life.slot.value)].length : 0;
  }
  // Cells in the model, and those of requests that have not ended: what a ledger must call used.
  TokenCount held() const { return held_; }
  TokenCount held_by_living() const { return held_by_living_; }
  std::uint64_t preemptions() const { return preemptions_; }
  std::uint64_t moves() const { return moves_; }
  std::uint64_t recomputed_rows() const { return recomputed_rows_; }
  std::uint64_t prompt_rows() const { return prompt_rows_; }
  std::uint64_t saved_tokens() const { return saved_tokens_; }
  std::uint64_t restored_tokens() const { return restored_tokens_; }

 private:
  struct Slot {
    std::uint64_t history = 0;
    TokenCount length = 0;
    RequestId owner;
    std::uint64_t adapters = 0;
    std::vector<Token> tokens;  // of the history; only what is before `length` counts
    TokenCount coming = 0;      // so much of a prefix has come, while it is empty

    void append(Token token);
    void clear();
  };

  bool exists(SlotId slot) const { return slot.value >= 0 && slot.value < layout_.slots; }
  Slot& slot(SlotId id) { return slots_[static_cast<std::size_t>(id.value)]; }
  void prepare(const Batch& batch, BatchResult& result);
  KvSnapshotPtr save(const SlotSave& save);
  void reuse(const SlotReuse& reuse);
  void fill(SimRequest& life, SlotId id, std::span<const Token> tokens);
  static std::vector<Token> tokens_of(const KvSnapshot& snapshot, TokenCount keep, std::uint64_t adapters);
  bool restore(const SlotRestore& restore);
  void trim(SlotId id);
  void move(SlotId from, SlotId to);
  bool check(const Batch& batch);
  void exchange(SlotId a, SlotId b);
  void check_part(const Batch& batch, const BatchPart& part, const SimRequest& life);
  void check_rows(const Batch& batch, const BatchPart& part, const SimRequest& life);
  void compute(const Batch& batch, const BatchPart& part, std::uint64_t step, BatchResult& result);
  void sample(SimRequest& life, const Slot& slot, BatchResult& result);

  const KvLedger::Layout layout_;
  const TokenCount rows_max_;
  const TokenCount block_;
  SimRequestTable& lives_;
  Faults& faults_;
  std::vector<Slot> slots_;
  TokenCount held_ = 0;
  TokenCount held_by_living_ = 0;
  std::uint64_t preemptions_ = 0;
  std::uint64_t moves_ = 0;
  std::uint64_t recomputed_rows_ = 0;
  std::uint64_t prompt_rows_ = 0;
  std::uint64_t saved_tokens_ = 0;
  std::uint64_t restored_tokens_ = 0;
  bool restore_fails_ = false;
};

}  // namespace chasqui
