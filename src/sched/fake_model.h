// A model of nothing but its own contract, for tests of the scheduler: it keeps what each slot holds, answers with a
// hash of it, and writes down every batch that breaks a rule of core/batch.h. One thread.
//
// A token is a hash of everything before it in its slot, so a wrong position, a forgotten trim or a mixed-up slot
// changes the answer; fake_answer() computes what a request gets when it is alone.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_ledger.h"
#include "core/batch.h"

namespace chasqui {

// When a request's answer ends by itself; 0: never.
struct FakeScript {
  TokenCount end_after = 0;   // the n-th token ends the generation
  TokenCount stop_after = 0;  // the n-th token completes the stop string "STOP"
};

inline std::uint64_t fake_hash(std::uint64_t hash, Token token) {
  hash = (hash ^ static_cast<std::uint64_t>(token)) * 0x100000001B3ull;
  return hash ^ (hash >> 29);
}

inline Token fake_next(std::span<const Token> history) {
  std::uint64_t hash = 0xCBF29CE484222325ull;
  for (const Token token : history) hash = fake_hash(hash, token);
  return static_cast<Token>(hash % 1000);
}

inline std::string fake_text(Token token) { return std::to_string(token) + ' '; }

// The text of `tokens` tokens when the request is the only one.
inline std::string fake_answer(std::vector<Token> history, TokenCount tokens, const FakeScript& script) {
  std::string text;
  for (TokenCount n = 1; n <= tokens; ++n) {
    history.push_back(fake_next(history));
    if (n != script.end_after && n != script.stop_after) text += fake_text(history.back());
  }
  return text;
}

class FakeModel {
 public:
  FakeModel(const KvLedger::Layout& layout, TokenCount rows_max)
      : layout_(layout), rows_max_(rows_max), slots_(static_cast<std::size_t>(layout.slots)) {}

  void script(RequestId id, FakeScript script) { scripts_[id] = script; }
  // Its finished event was seen: no row of it may come any more.
  void ended(RequestId id) {
    decoding_.erase(id);
    ended_.insert(id);
  }

  // What `status` does: anything but ok changes nothing.
  void run(const Batch& batch, DecodeStatus status, BatchResult& result) {
    result.clear();
    result.status = status;
    for (const SlotId slot : batch.trims) trim(slot);
    check(batch);
    if (status != DecodeStatus::ok) return;
    for (const BatchPart& part : batch.parts) compute(batch, part, result);
  }

  // What was wrong with the batches so far; empty when all is well.
  const std::vector<std::string>& faults() const { return faults_; }
  // Requests that have a token and no end yet: they must be in every decode batch.
  const std::set<RequestId>& decoding() const { return decoding_; }
  TokenCount held(SlotId slot) const {
    return static_cast<TokenCount>(slots_[static_cast<std::size_t>(slot.value)].history.size());
  }
  // What the slots hold of requests that have not ended: what a ledger must call used.
  TokenCount held_by_living() const {
    TokenCount sum = 0;
    for (const Slot& slot : slots_) {
      if (!ended_.contains(slot.owner)) sum += static_cast<TokenCount>(slot.history.size());
    }
    return sum;
  }

 private:
  struct Slot {
    RequestId owner;
    std::vector<Token> history;
  };
  struct Answer {
    TokenCount tokens = 0;
    Token last = 0;
  };

  void expect(bool condition, const std::string& fault) {
    if (!condition) faults_.push_back(fault);
  }

  void trim(SlotId slot) {
    if (slot.value < 0 || slot.value >= layout_.slots) return expect(false, "trim of a slot that does not exist");
    Slot& trimmed = slots_[static_cast<std::size_t>(slot.value)];
    expect(!trimmed.history.empty(), "trim of an empty slot");
    expect(ended_.contains(trimmed.owner), "trim of a slot whose request has not ended");
    trimmed = Slot{};
  }

  void check(const Batch& batch) {
    expect(!batch.rows.empty() && !batch.parts.empty(), "an empty batch was run");
    expect(static_cast<TokenCount>(batch.rows.size()) <= rows_max_, "more rows than rows_max");
    std::int32_t next_row = 0;
    std::set<RequestId> ids;
    SlotId previous;
    for (const BatchPart& part : batch.parts) {
      expect(part.first_row == next_row && part.rows > 0, "parts do not follow each other");
      next_row += part.rows;
      expect(previous < part.slot && part.slot.value < layout_.slots, "slots do not ascend");
      previous = part.slot;
      expect(!ended_.contains(part.request->id), "rows of a request that has ended");
      ids.insert(part.request->id);
      check_part(batch, part);
    }
    expect(next_row == static_cast<std::int32_t>(batch.rows.size()), "rows that belong to no part");
    const bool decode = batch.kind == Batch::Kind::decode;
    if (decode) expect(ids == decoding_, "a decode batch without exactly the decoding requests");
    check_cells();
  }

  void check_part(const Batch& batch, const BatchPart& part) {
    const Request& request = *part.request;
    const Slot& slot = slots_[static_cast<std::size_t>(part.slot.value)];
    const auto prompt = static_cast<TokenCount>(request.prompt.size());
    TokenCount position = held(part.slot);
    expect(position == 0 || slot.owner == request.id, "a slot was reused without a trim");
    if (batch.kind == Batch::Kind::decode) {
      expect(part.rows == 1 && part.samples, "a decode part is one row that samples");
      expect(position >= prompt, "a decode row before the end of the prompt");
    } else {
      expect(position + part.rows <= prompt, "a prefill chunk beyond the prompt");
      const bool last_chunk = position + part.rows == prompt;
      expect(part.samples == (last_chunk && request.max_tokens > 0), "the last chunk samples and no other");
    }
    for (std::int32_t i = 0; i < part.rows; ++i, ++position) {
      const Row& row = batch.rows[static_cast<std::size_t>(part.first_row + i)];
      expect(row.slot == part.slot, "a row of another slot in a part");
      expect(row.position == position, "a position that does not continue its slot");
      expect(row.output == (part.samples && i + 1 == part.rows), "output at the wrong row");
      const Token token = position < prompt ? request.prompt[static_cast<std::size_t>(position)]
                                            : answers_[request.id].last;
      expect(row.token == token, "a row with the wrong token");
    }
  }

  void check_cells() {
    TokenCount used = 0;
    for (std::int32_t i = 0; i < layout_.slots; ++i) {
      expect(held(SlotId{i}) <= layout_.cells_per_slot, "a slot holds too many cells");
      used += held(SlotId{i});
    }
    expect(used <= layout_.cells, "the context holds too many cells");
  }

  void compute(const Batch& batch, const BatchPart& part, BatchResult& result) {
    Slot& slot = slots_[static_cast<std::size_t>(part.slot.value)];
    slot.owner = part.request->id;
    for (std::int32_t i = 0; i < part.rows; ++i) {
      slot.history.push_back(batch.rows[static_cast<std::size_t>(part.first_row + i)].token);
    }
    if (!part.samples) return;
    Answer& answer = answers_[slot.owner];
    answer.last = fake_next(slot.history);
    ++answer.tokens;
    decoding_.insert(slot.owner);

    const FakeScript script = scripts_[slot.owner];
    Sample& sample = result.samples.emplace_back();
    sample.request = slot.owner;
    sample.token = answer.last;
    sample.end_of_generation = answer.tokens == script.end_after;
    sample.stopped = !sample.end_of_generation && answer.tokens == script.stop_after;
    if (sample.stopped) sample.stop_string = "STOP";
    if (!sample.end_of_generation && !sample.stopped) sample.text = fake_text(answer.last);
  }

  const KvLedger::Layout layout_;
  const TokenCount rows_max_;
  std::vector<Slot> slots_;
  std::map<RequestId, FakeScript> scripts_;
  std::map<RequestId, Answer> answers_;
  std::set<RequestId> decoding_;
  std::set<RequestId> ended_;
  std::vector<std::string> faults_;
};

}  // namespace chasqui
