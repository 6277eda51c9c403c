// A model of nothing but its own contract, for tests of the scheduler: it keeps what each slot holds, answers with a
// hash of it, and writes down every batch that breaks a rule of core/batch.h. One thread.
//
// A token is a hash of everything before it in its slot, so a wrong position, a forgotten trim, a move to the wrong
// place or a mixed-up slot changes the answer; fake_answer() computes what a request gets when it is alone. A snapshot
// is the tokens of its slot and whose they are, so a wrong one changes the answer, too.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.h"
#include "core/request.h"
#include "sched/fake_answer.h"
#include "sched/fake_snapshot.h"
#include "sched/scheduler.h"

namespace chasqui {

class FakeModel {
 public:
  explicit FakeModel(const SchedulerConfig& config)
      : layout_(config.kv),
        rows_max_(config.rows_max),
        dense_slots_(config.dense_slots),
        exchanges_(config.exchanges),
        reuse_(config.reuse),
        slots_(static_cast<std::size_t>(config.kv.slots)) {}

  // REQUIRES: before the first batch with a row of it.
  void meet(RequestPtr request, FakeScript script) {
    scripts_[request->id] = script;
    requests_[request->id] = std::move(request);
  }
  // Its finished event was seen: no row of it may come any more.
  void ended(RequestId id) { ended_.insert(id); }

  // What `status` does: with anything but ok no row is computed; all that comes before has happened in any case.
  void run(const Batch& batch, DecodeStatus status, BatchResult& result) {
    result.clear();
    result.status = status;
    missing_.clear();
    prepare(batch, result);
    if (!result.not_restored.empty()) {
      result.status = DecodeStatus::aborted;  // as the runner does it
      return;
    }
    check(batch);
    if (status != DecodeStatus::ok) return;
    for (const BatchPart& part : batch.parts) compute(batch, part, result);
  }

  // So many of the next ones fail.
  int saves_to_fail = 0;
  int restores_to_fail = 0;
  // … and a snapshot takes at least so many for each token.
  std::size_t bytes_per_token = sizeof(Token);

  // What was wrong with the batches so far; empty when all is well.
  const std::vector<std::string>& faults() const { return faults_; }
  // Living requests of which all but the newest token is in a slot.
  std::set<RequestId> decoding() const {
    std::set<RequestId> ids;
    for (const Slot& slot : slots_) {
      if (!slot.history.empty() && !ended_.contains(slot.owner) && decodes(slot)) ids.insert(slot.owner);
    }
    return ids;
  }
  // What the slots hold of requests that have not ended: what a ledger must call used.
  TokenCount held_by_living() const {
    TokenCount sum = 0;
    for (const Slot& slot : slots_) {
      if (!ended_.contains(slot.owner)) sum += static_cast<TokenCount>(slot.history.size());
    }
    return sum;
  }
  RequestId owner(SlotId slot) const { return slots_[static_cast<std::size_t>(slot.value)].owner; }
  // Slots that were trimmed although their request lives on.
  std::uint64_t preempted() const { return preempted_; }
  // Rows of prompts that were computed, those of some request among them.
  std::uint64_t prompt_rows() const { return prompt_rows_; }
  TokenCount prompt_rows(std::uint64_t id) const {
    const auto found = prompt_rows_of_.find(RequestId{id});
    return found != prompt_rows_of_.end() ? found->second : 0;
  }
  // Of next tokens, that were checked.
  std::uint64_t draft_tokens() const { return draft_tokens_; }
  std::uint64_t accepted_tokens() const { return accepted_tokens_; }
  std::uint64_t saves() const { return saves_; }
  std::uint64_t restores() const { return restores_; }
  std::uint64_t refused_restores() const { return refused_restores_; }
  std::uint64_t moved_restores() const { return moved_restores_; }

 private:
  struct Slot {
    RequestId owner;
    TokenCount prompt = 0;
    std::vector<Token> history;
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
    return tokens > 0 && static_cast<TokenCount>(slot.history.size()) == slot.prompt + tokens - 1;
  }

  // All tokens of a request that are known so far.
  std::vector<Token> tokens_of(const Request& request) {
    std::vector<Token> tokens = request.prompt;
    const std::vector<Token>& answer = answers_[request.id];
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    return tokens;
  }

  void prepare(const Batch& batch, BatchResult& result) {
    std::set<SlotId> saved;
    for (const SlotSave& save : batch.saves) {
      expect(saved.insert(save.slot).second, "a slot is saved twice in one step");
      result.snapshots.push_back(this->save(save));
    }
    for (const SlotId slot : batch.trims) trim(slot);
    std::set<SlotId> restored;
    for (std::size_t i = 0; i < batch.restores.size(); ++i) {
      if (!restore(batch.restores[i])) result.not_restored.push_back(i);
      restored.insert(batch.restores[i].slot);
    }
    for (const SlotMove& move : batch.moves) {
      moved_restores_ += restored.contains(move.from) ? 1u : 0u;
      move.exchange ? exchange(move) : this->move(move);
    }
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
    if (saves_to_fail > 0) return --saves_to_fail, nullptr;
    const FakeOwner by{slot.owner, owner.tenant.id, id_of(owner.adapters.get())};
    const auto tokens = std::span(slot.history).first(static_cast<std::size_t>(save.tokens));
    if (block == 0) return fake_whole(by, tokens, bytes_per_token);
    return fake_blocks(by, tokens.subspan(static_cast<std::size_t>(save.from)), block, bytes_per_token);
  }

  bool restore(const SlotRestore& restore) {
    if (!exists(restore.slot) || !restore.snapshot) return expect(false, "a restore of nothing, or to nowhere"), true;
    const KvSnapshot& snapshot = *restore.snapshot;
    Slot& slot = at(restore.slot);
    const Request& request = *requests_.at(restore.request);
    const std::vector<Token> tokens = tokens_of(request);
    expect(slot.history.empty(), "a restore into a slot that is not empty");
    expect(restore.keep > 0 && restore.keep <= snapshot.tokens(), "a restore of more than there is");
    expect(reuse_.cache.cut_anywhere || restore.keep == snapshot.tokens(), "a snapshot was cut that cannot be");
    expect(restore.keep < static_cast<TokenCount>(tokens.size()), "a restore of all, with nothing left to compute");
    expect(held_by_all() + snapshot.tokens() <= layout_.cells, "a restore without the room for the whole snapshot");
    expect(!ended_.contains(request.id), "a restore for a request that has ended");
    const auto [header, kept] = fake_content(snapshot, restore.keep);
    expect(request.use_cache, "a request was restored that does not use the cache");
    expect(reuse_.shared_by_tenants || header.tenant == request.tenant.id, "a restore of another tenant's tokens");
    expect(header.adapters == id_of(request.adapters.get()), "a restore of what other adapters have computed");
    expect(std::equal(kept.begin(), kept.end(), tokens.begin()), "a restore of other tokens than the request has");
    if (restores_to_fail > 0) {
      --restores_to_fail;
      ++refused_restores_;
      missing_.insert(restore.slot);
      return false;
    }
    ++restores_;
    slot = Slot{request.id, prompt_of(request), kept};
    return true;
  }

  TokenCount held_by_all() const {
    TokenCount sum = 0;
    for (const Slot& slot : slots_) sum += static_cast<TokenCount>(slot.history.size());
    return sum;
  }

  void trim(SlotId slot) {
    if (!exists(slot)) return expect(false, "trim of a slot that does not exist");
    expect(!at(slot).history.empty(), "trim of an empty slot");
    if (!ended_.contains(at(slot).owner)) ++preempted_;
    at(slot) = Slot{};
  }

  void move(const SlotMove& move) {
    expect(dense_slots_, "a move where slots need not be adjacent");
    if (!exists(move.from) || !exists(move.to)) return expect(false, "a move of a slot that does not exist");
    const bool empty = missing_.erase(move.from) > 0;
    expect(empty || !at(move.from).history.empty(), "a move from an empty slot");
    expect(empty || !ended_.contains(at(move.from).owner), "a move of a request that has ended");
    expect(at(move.to).history.empty(), "a move into a slot that is not empty");
    expect(move.to < move.from || !decodes(at(move.from)), "a decoding request moves away from the others");
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
    expect(move.to < move.from, "an exchange that does not bring a decoding request down");
    std::swap(at(move.to), at(move.from));
    if (to_missing) missing_.insert(move.from);
    if (from_missing) missing_.insert(move.to);
  }

  void check(const Batch& batch) {
    expect(!batch.empty() && batch.rows.empty() == batch.parts.empty(), "an empty batch was run");
    const bool changes = !batch.trims.empty() || !batch.restores.empty() || !batch.moves.empty();
    expect(!batch.rows.empty() || !changes, "slots change in a step without rows");
    expect(static_cast<TokenCount>(batch.rows.size()) <= rows_max_, "more rows than rows_max");
    std::int32_t next_row = 0;
    SlotId previous;
    for (const BatchPart& part : batch.parts) {
      expect(part.first_row == next_row && part.rows > 0, "parts do not follow each other");
      next_row += width_of(part);
      if (!exists(part.slot)) return expect(false, "rows of a slot that does not exist");
      expect(previous < part.slot, "slots do not ascend");
      previous = part.slot;
      expect(!ended_.contains(part.request->id), "rows of a request that has ended");
      expect(same_adapters(part.request->adapters.get(), batch.adapters), "rows of a request with other adapters");
      check_part(batch, part);
      check_filling(batch, part);
    }
    check_padding(batch, next_row);
    if (dense_slots_) expect(one_pass(batch), "rows that need more than one pass in one batch");
    if (batch.kind == Batch::Kind::decode && !batch.parts.empty()) {
      expect(decodes(at(batch.parts.back().slot)), "a decode batch ends with a row of a prompt, which fills no hole");
    }
    check_cells(batch);
  }

  void check_part(const Batch& batch, const BatchPart& part) {
    const Request& request = *part.request;
    const std::vector<Token> tokens = tokens_of(request);
    const auto length = static_cast<TokenCount>(tokens.size());
    TokenCount position = held(part.slot);
    expect(position == 0 || at(part.slot).owner == request.id, "a slot was reused without a trim");
    for (const Slot& other : slots_) {
      expect(&other == &at(part.slot) || other.history.empty() || other.owner != request.id,
             "a request has rows in two slots");
    }
    const bool decodes_now = position > 0 && decodes(at(part.slot));
    if (batch.kind == Batch::Kind::decode) {
      expect(part.rows == 1 || !decodes_now, "a decode part of more than one row");
      expect(part.rows == 1 || part.rows <= width_of(batch.parts.back()), "a hole is filled up with too much");
      expect(decodes_now || dense_slots_, "a row of a prompt among the decoding ones for no reason");
    } else {
      expect(!decodes_now, "a decoding request in a prefill batch");
    }
    if (position + part.rows > length) return expect(false, "rows beyond the last token");
    expect(part.samples == (position + part.rows == length && length - request.max_tokens < prompt_of(request)),
           "the row of the last token samples, and no other");
    for (std::int32_t i = 0; i < part.rows; ++i, ++position) {
      const Row& row = batch.rows[static_cast<std::size_t>(part.first_row + i)];
      expect(row.slot == part.slot, "a row of another slot in a part");
      expect(row.position == position, "a position that does not continue its slot");
      expect(row.output == (part.tells || (part.samples && i + 1 == part.rows)), "output at the wrong row");
      expect(row.token == tokens[static_cast<std::size_t>(position)], "a row with the wrong token");
    }
    expect(part.draft_tokens == 0 || (decodes_now && part.samples), "draft tokens for a request that samples nothing");
    expect(said(request.id) + part.draft_tokens < std::max(request.max_tokens, 1),
           "draft tokens beyond the end of the answer");
    for (std::int32_t i = 0; i < part.draft_tokens; ++i, ++position) {
      const Row& row = batch.rows[static_cast<std::size_t>(part.last_row() + 1 + i)];
      expect(row.slot == part.slot && row.position == position && row.output,
             "a draft token that does not follow its part");
    }
  }

  void check_filling(const Batch& batch, const BatchPart& part) {
    if (part.padding == 0) return;
    const auto draft_tokens = [](const BatchPart& other) { return other.draft_tokens > 0; };
    const bool use =
        batch.kind == Batch::Kind::prefill || std::any_of(batch.parts.begin(), batch.parts.end(), draft_tokens);
    expect(dense_slots_ && use, "a part is filled up where it is of no use");
    expect(held(part.slot) + width_of(part) <= layout_.cells_per_slot, "padding beyond the cells of a slot");
    TokenCount position = held(part.slot) + part.rows + part.draft_tokens;
    for (std::int32_t i = part.rows + part.draft_tokens; i < width_of(part); ++i, ++position) {
      const Row& row = batch.rows[static_cast<std::size_t>(part.first_row + i)];
      expect(row.slot == part.slot && row.position == position && !row.output, "padding that does not follow its part");
    }
  }

  static TokenCount prompt_of(const Request& request) { return static_cast<TokenCount>(request.prompt.size()); }

  void check_padding(const Batch& batch, std::int32_t first) {
    const auto rows = static_cast<std::int32_t>(batch.rows.size());
    expect(first + batch.padding == rows, "rows that belong to no part");
    expect(batch.padding == 0 || (dense_slots_ && batch.kind == Batch::Kind::decode), "padding where it is of no use");
    for (std::int32_t i = std::max(first, 1); i < rows; ++i) {
      const Row& row = batch.rows[static_cast<std::size_t>(i)];
      const SlotId before = batch.rows[static_cast<std::size_t>(i - 1)].slot;
      expect(row.slot.value == before.value + 1 && row.position == 0, "padding that does not go on from the last slot");
      expect(exists(row.slot) && held(row.slot) == 0, "padding in a slot that holds something");
    }
  }

  void check_cells(const Batch& batch) {
    expect(held_by_all() + static_cast<TokenCount>(batch.rows.size()) <= layout_.cells,
           "more rows than the context has cells");
    for (const BatchPart& part : batch.parts) {
      expect(held(part.slot) + part.rows + part.draft_tokens <= layout_.cells_per_slot,
             "more rows than the slot has cells");
    }
  }

  void compute(const Batch& batch, const BatchPart& part, BatchResult& result) {
    Slot& slot = at(part.slot);
    slot.owner = part.request->id;
    slot.prompt = prompt_of(*part.request);
    const TokenCount of_prompt = std::clamp(slot.prompt - held(part.slot), 0, part.rows);
    prompt_rows_ += static_cast<std::uint64_t>(of_prompt);
    prompt_rows_of_[slot.owner] += of_prompt;
    for (std::int32_t i = 0; i < part.rows; ++i) {
      slot.history.push_back(batch.rows[static_cast<std::size_t>(part.first_row + i)].token);
    }
    draft_tokens_ += static_cast<std::uint64_t>(part.draft_tokens);
    if (part.tells) tell(batch, part, result);
    for (std::int32_t right = 0; part.samples; ++right) {
      const Sample sampled = sample(slot);
      result.samples.push_back(sampled);
      if (sampled.ends() || right == part.draft_tokens) return;
      const Token draft_token = batch.rows[static_cast<std::size_t>(part.last_row() + 1 + right)].token;
      if (draft_token != sampled.token) return;
      slot.history.push_back(draft_token);
      ++accepted_tokens_;
    }
  }

  // Each token of the prompt is as likely as its number says.
  static void tell(const Batch& batch, const BatchPart& part, BatchResult& result) {
    PromptChances& told = result.prompts.emplace_back();
    told.from = batch.rows[static_cast<std::size_t>(part.first_row)].position + 1;
    for (TokenCount next = told.from; next < std::min(told.from + part.rows, prompt_of(*part.request)); ++next) {
      const Token token = part.request->prompt[static_cast<std::size_t>(next)];
      told.chances.push_back({{token, -static_cast<float>(token)}});
    }
  }

  Sample sample(const Slot& slot) {
    std::vector<Token>& answer = answers_[slot.owner];
    const FakeScript script = scripts_[slot.owner];
    answer.push_back(fake_next(slot.history, script.repeats));
    return fake_sample(slot.owner, answer, script);
  }

  const KvLedger::Layout layout_;
  const TokenCount rows_max_;
  const bool dense_slots_;
  const bool exchanges_;
  const ReuseConfig reuse_;
  std::vector<Slot> slots_;
  std::map<RequestId, RequestPtr> requests_;
  std::map<RequestId, FakeScript> scripts_;
  std::map<RequestId, std::vector<Token>> answers_;
  std::set<RequestId> ended_;
  std::set<SlotId> missing_;  // what was to be restored into them in this batch is not there
  std::map<RequestId, TokenCount> prompt_rows_of_;
  std::uint64_t prompt_rows_ = 0;
  std::uint64_t preempted_ = 0;
  std::uint64_t draft_tokens_ = 0;
  std::uint64_t accepted_tokens_ = 0;
  std::uint64_t saves_ = 0;
  std::uint64_t restores_ = 0;
  std::uint64_t refused_restores_ = 0;
  std::uint64_t moved_restores_ = 0;
  std::vector<std::string> faults_;
};

}  // namespace chasqui
