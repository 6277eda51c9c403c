// What the slots of a FakeModel hold, and what a batch does to them before its rows: saves, trims, restores, moves.
// Writes down what breaks a rule of core/batch.h. One thread.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "core/request.h"
#include "sched/fake_snapshot.h"
#include "sched/scheduler.h"

namespace chasqui {

class FakeSlots {
 public:
  explicit FakeSlots(const SchedulerConfig& config)
      : layout_(config.kv),
        dense_slots_(config.dense_slots),
        exchanges_(config.exchanges),
        reuse_(config.reuse),
        slots_(static_cast<std::size_t>(config.kv.slots)) {}

  // So many of the next ones fail.
  int saves_to_fail = 0;
  int restores_to_fail = 0;
  // … and a snapshot takes at least so many for each token.
  std::size_t bytes_per_token = sizeof(Token);

  // What was wrong with the batches so far; empty when all is well.
  const std::vector<std::string>& faults() const { return faults_; }
  // Slots that were trimmed although their request lives on.
  std::uint64_t preempted() const { return preempted_; }
  std::uint64_t saves() const { return saves_; }
  std::uint64_t restores() const { return restores_; }
  // … in so many pieces, those of copies among them.
  std::uint64_t pieces() const { return pieces_; }
  std::uint64_t copies() const { return copies_; }  // from slot to slot
  std::uint64_t reuses() const { return reuses_; }  // in place
  std::uint64_t tokens_copied_out() const { return tokens_saved_; }
  std::uint64_t refused_restores() const { return refused_restores_; }
  std::uint64_t moved_restores() const { return moved_restores_; }
  std::uint64_t shifts() const { return shifts_; }
  std::uint64_t moved_texts() const { return moved_texts_; }

 protected:
  struct Slot {
    RequestId owner;
    TokenCount prompt = 0;
    std::vector<Token> history;
    bool sampled = false;          // here, so that what is forced behind it keeps it decoding
    bool moving = false;           // it is to be moved up, and is not what its sequence has before that
    TokenCount clean = INT32_MAX;  // positions before it were computed beside nothing that is gone
  };

  void expect(bool condition, const std::string& fault) {
    if (!condition) faults_.push_back(fault);
  }

  bool exists(SlotId slot) const { return slot.value >= 0 && slot.value < layout_.slots; }
  Slot& at(SlotId slot) { return slots_[static_cast<std::size_t>(slot.value)]; }
  TokenCount held(SlotId slot) { return static_cast<TokenCount>(at(slot).history.size()); }
  TokenCount said(RequestId id) const {
    const auto found = answers_.find(id);
    return found != answers_.end() ? static_cast<TokenCount>(found->second.size()) : 0;
  }
  bool decodes(const Slot& slot) const {
    const TokenCount tokens = said(slot.owner);
    const TokenCount gone = gone_.contains(slot.owner) ? gone_.at(slot.owner) : 0;
    const bool known = static_cast<TokenCount>(slot.history.size()) == slot.prompt + tokens - 1 - gone;
    return tokens > 0 && (known || slot.sampled);
  }

  // All tokens of a request that are known so far.
  std::vector<Token> tokens_of(const Request& request) {
    std::vector<Token> tokens = request.prompt;
    const std::vector<Token>& answer = answers_[request.id];
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    tokens.erase(tokens.begin() + request.keep, tokens.begin() + request.keep + gone_[request.id]);
    return tokens;
  }

  void shift(const SlotShift& shift) {
    if (!exists(shift.slot)) return expect(false, "a shift in a slot that does not exist");
    Slot& slot = at(shift.slot);
    const Request& request = *requests_.at(shift.request);
    expect(slot.owner == request.id && !ended_.contains(request.id), "a shift of another sequence");
    expect((slot.moving || shift.from == request.keep) && shift.from < shift.to, "a shift of what is kept");
    if (shift.to >= held(shift.slot)) return expect(false, "a shift of more than there is");
    slot.history.erase(slot.history.begin() + shift.from, slot.history.begin() + shift.to);
    slot.clean = std::min(slot.clean, shift.from);
    if (!slot.moving) gone_[request.id] += shift.to - shift.from;
    slot.moving ? ++moved_texts_ : ++shifts_;
  }

  // What was moved up is what its sequence has.
  void expect_moved() {
    for (Slot& slot : slots_) {
      if (!std::exchange(slot.moving, false)) continue;
      const std::vector<Token> tokens = tokens_of(*requests_.at(slot.owner));
      expect(
          slot.history.size() < tokens.size() && std::equal(slot.history.begin(), slot.history.end(), tokens.begin()),
          "other tokens were moved up");
    }
  }

  void prepare(const Batch& batch, BatchResult& result) {
    std::set<SlotId> saved;
    for (const SlotSave& save : batch.saves) {
      expect(saved.insert(save.slot).second, "a slot is saved twice in one step");
      result.snapshots.push_back(this->save(save));
    }
    for (const SlotId slot : batch.trims) trim(slot);
    for (const SlotReuse& each : batch.reuses) {
      const auto moves = [&](const SlotShift& shift) { return shift.request == each.request; };
      reuse(each, std::ranges::any_of(batch.shifts, moves));
    }
    std::set<SlotId> restored;
    for (std::size_t i = 0; i < batch.restores.size(); ++i) {
      if (!restore(batch.restores[i])) result.not_restored.push_back(i);
      restored.insert(batch.restores[i].slot);
    }
    for (const SlotMove& move : batch.moves) {
      moved_restores_ += restored.contains(move.from) ? 1u : 0u;
      move.exchange ? exchange(move) : this->move(move);
    }
    if (!result.not_restored.empty()) return;
    expect(batch.shifts.empty() || !batch.rows.empty(), "a slot is shifted in a step without rows");
    for (const SlotShift& each : batch.shifts) shift(each);
    expect_moved();
  }

  KvSnapshotPtr save(const SlotSave& save) {
    if (!exists(save.slot)) return expect(false, "a save of a slot that does not exist"), nullptr;
    const TokenCount block = reuse_.kv_block;
    expect(save.from >= 0 && save.from < save.tokens, "a save of nothing");
    expect(block > 0 ? save.tokens <= held(save.slot) && save.from % block == 0
                     : save.from == 0 && save.tokens == held(save.slot),
           "a save of what the slot does not hold");
    const Slot& slot = at(save.slot);
    const Request& owner = *requests_.at(slot.owner);
    expect(owner.use_cache && reuse_.cache.bytes > 0, "a request was saved that does not use the cache");
    ++saves_;
    tokens_saved_ += static_cast<std::uint64_t>(save.tokens - save.from);
    if (saves_to_fail > 0) return --saves_to_fail, nullptr;
    const FakeOwner by{slot.owner, owner.tenant.id, id_of(owner.adapters.get())};
    std::vector<Token> kept(slot.history.begin(), slot.history.begin() + save.tokens);
    if (slot.clean < save.tokens) std::fill(kept.begin() + slot.clean, kept.end(), -2);  // no request has these
    const std::span<const Token> tokens = kept;
    if (block == 0) return fake_whole(by, tokens, bytes_per_token);
    return fake_blocks(by, tokens.subspan(static_cast<std::size_t>(save.from)), block, bytes_per_token);
  }

  // `moves`: some of it is moved up afterwards.
  void reuse(const SlotReuse& reuse, bool moves) {
    if (!exists(reuse.slot)) return expect(false, "a slot goes on that does not exist");
    Slot& slot = at(reuse.slot);
    const Request& request = *requests_.at(reuse.request);
    const std::vector<Token> tokens = tokens_of(request);
    expect(ended_.contains(slot.owner), "a slot goes on whose request has not ended");
    expect(reuse.keep > 0 && reuse.keep <= held(reuse.slot), "more goes on than there is");
    expect(moves || reuse.keep < static_cast<TokenCount>(tokens.size()), "all goes on, with nothing left to compute");
    expect(reuse.keep <= slot.clean, "what was computed beside tokens that are gone goes on");
    slot.clean = INT32_MAX;
    slot.history.resize(static_cast<std::size_t>(reuse.keep));
    const bool same = !moves && std::equal(slot.history.begin(), slot.history.end(), tokens.begin());
    expect(moves || same, "other tokens go on");
    slot.moving = moves;
    expect_may_have(request, owner_of(slot));
    ++reuses_;
    slot.owner = request.id;
    slot.prompt = prompt_of(request);
    slot.sampled = false;
  }

  FakeOwner owner_of(const Slot& slot) const {
    const Request& owner = *requests_.at(slot.owner);
    expect_uses_cache(owner);
    return {slot.owner, owner.tenant.id, id_of(owner.adapters.get())};
  }
  void expect_uses_cache(const Request& request) const {
    if (!request.use_cache) faults_.push_back("what a request has computed that does not use the cache goes on");
  }
  void expect_may_have(const Request& request, const FakeOwner& by) {
    expect(request.use_cache, "a request was restored that does not use the cache");
    expect(!ended_.contains(request.id), "a restore for a request that has ended");
    expect(reuse_.shared_by_tenants || by.tenant == request.tenant.id, "a restore of another tenant's tokens");
    expect(by.adapters == id_of(request.adapters.get()), "a restore of what other adapters have computed");
  }

  bool restore(const SlotRestore& restore) {
    const bool from_slot = restore.source.valid();
    if (!exists(restore.slot) || (!restore.snapshot && !from_slot)) {
      return expect(false, "a restore of nothing, or to nowhere"), true;
    }
    Slot& slot = at(restore.slot);
    const Request& request = *requests_.at(restore.request);
    const std::vector<Token> tokens = tokens_of(request);
    const TokenCount there = restore.snapshot ? restore.snapshot->tokens() : held(restore.source);
    expect(slot.history.empty(), "a restore into a slot that is not empty");
    expect(restore.keep > 0 && restore.keep <= there, "a restore of more than there is");
    expect(reuse_.cache.cut_anywhere || restore.keep == there, "a snapshot was cut that cannot be");
    expect(restore.keep < static_cast<TokenCount>(tokens.size()), "a restore of all, with nothing left to compute");
    const bool pieces = reuse_.kv_block > 0 && reuse_.keeps_slots;
    expect(held_by_all() + (pieces ? 0 : there) <= layout_.cells, "a restore without the room for the whole snapshot");
    expect(pieces || restore.whole(), "a piece of what is brought back whole");
    expect(restore.from == coming_[restore.slot], "a piece that does not follow the one before");
    expect(restore.from < restore.end() && restore.end() <= restore.keep, "a piece of nothing, or of too much");
    expect(!pieces || restore.from % reuse_.kv_block == 0, "a piece that does not begin with a block");
    const auto [header, kept] = from_slot ? std::pair(owner_of(at(restore.source)), at(restore.source).history)
                                          : fake_content(*restore.snapshot, restore.keep, reuse_.shared_by_tenants);
    expect(!from_slot || restore.keep <= at(restore.source).clean, "a copy of what was computed beside lost tokens");
    expect(std::equal(kept.begin(), kept.begin() + restore.keep, tokens.begin()),
           "a restore of other tokens than the request has");
    expect_may_have(request, header);
    if (restores_to_fail > 0) {
      --restores_to_fail;
      ++refused_restores_;
      missing_.insert(restore.slot);
      coming_.erase(restore.slot);
      return false;
    }
    ++pieces_;
    coming_[restore.slot] = restore.end();
    if (restore.end() < restore.keep) return true;
    coming_.erase(restore.slot);
    from_slot ? ++copies_ : ++restores_;
    slot = Slot{request.id, prompt_of(request), {kept.begin(), kept.begin() + restore.keep}};
    return true;
  }

  TokenCount held_by_all() const {
    TokenCount sum = 0;
    for (const Slot& slot : slots_) sum += static_cast<TokenCount>(slot.history.size());
    return sum;
  }

  void trim(SlotId slot) {
    if (!exists(slot)) return expect(false, "trim of a slot that does not exist");
    expect(coming_.erase(slot) > 0 || !at(slot).history.empty(), "trim of an empty slot");
    if (!at(slot).history.empty() && !ended_.contains(at(slot).owner)) ++preempted_;
    at(slot) = Slot{};
  }

  void move(const SlotMove& move) {
    expect(dense_slots_, "a move where slots need not be adjacent");
    if (!exists(move.from) || !exists(move.to)) return expect(false, "a move of a slot that does not exist");
    const bool empty = missing_.erase(move.from) > 0;
    expect(empty || !at(move.from).history.empty(), "a move from an empty slot");
    expect(empty || !ended_.contains(at(move.from).owner), "a move of a request that has ended");
    expect(at(move.to).history.empty(), "a move into a slot that is not empty");
    if (empty) missing_.insert(move.to);
    at(move.to) = std::move(at(move.from));
    at(move.from) = Slot{};
  }

  void exchange(const SlotMove& move) {
    expect(dense_slots_ && exchanges_, "an exchange where there is none");
    if (!exists(move.from) || !exists(move.to)) return expect(false, "an exchange with a slot that does not exist");
    const bool from_missing = missing_.erase(move.from) > 0;
    const bool to_missing = missing_.erase(move.to) > 0;
    expect(from_missing || !at(move.from).history.empty(), "an exchange of nothing");
    expect(to_missing || !at(move.to).history.empty(), "an exchange with an empty slot");
    expect(from_missing || decodes(at(move.from)), "an exchange for the sake of a prompt");
    std::swap(at(move.to), at(move.from));
    if (to_missing) missing_.insert(move.from);
    if (from_missing) missing_.insert(move.to);
  }

  static TokenCount prompt_of(const Request& request) { return static_cast<TokenCount>(request.prompt.size()); }

  const KvLedger::Layout layout_;
  const bool dense_slots_;
  const bool exchanges_;
  const ReuseConfig reuse_;
  std::vector<Slot> slots_;
  std::map<RequestId, RequestPtr> requests_;
  std::map<RequestId, std::vector<Token>> answers_;
  std::map<RequestId, TokenCount> gone_;  // tokens behind those that are kept
  std::set<RequestId> ended_;
  std::set<SlotId> missing_;             // what was to be restored into them in this batch is not there
  std::map<SlotId, TokenCount> coming_;  // how much of a prefix has come
  mutable std::vector<std::string> faults_;

 private:
  std::uint64_t preempted_ = 0;
  std::uint64_t saves_ = 0;
  std::uint64_t restores_ = 0;
  std::uint64_t pieces_ = 0;
  std::uint64_t copies_ = 0;
  std::uint64_t reuses_ = 0;
  std::uint64_t tokens_saved_ = 0;
  std::uint64_t refused_restores_ = 0;
  std::uint64_t moved_restores_ = 0;
  std::uint64_t shifts_ = 0;
  std::uint64_t moved_texts_ = 0;
};

}  // namespace chasqui
