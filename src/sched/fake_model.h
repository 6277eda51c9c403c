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
#include "core/put_off.h"
#include "core/request.h"
#include "sched/fake_answer.h"
#include "sched/fake_slots.h"
#include "sched/scheduler.h"

namespace chasqui {

class FakeModel : public FakeSlots {
 public:
  explicit FakeModel(const SchedulerConfig& config) : FakeSlots(config), rows_max_(config.rows_max) {}

  // REQUIRES: before the first batch with a row of it.
  void meet(RequestPtr request, FakeScript script) {
    scripts_[request->id] = script;
    if (!request->begun.empty()) answers_[request->id] = request->begun;
    requests_[request->id] = std::move(request);
  }
  // Its finished event was seen: no row of it may come any more.
  void ended(RequestId id) { ended_.insert(id); }

  // What `status` does: with anything but ok no row is computed; all that comes before has happened in any case.
  void run(const Batch& batch, DecodeStatus status, BatchResult& result) {
    result.clear();
    result.status = status;
    missing_.clear();
    undone_.clear();
    prepare(batch, result);
    if (!result.not_restored.empty()) {
      result.status = DecodeStatus::aborted;  // as the runner does it
      for (const SlotShift& shift : batch.shifts) {
        undone_.insert(shift.slot.value);
        if (!at(shift.slot).moving) gone_[shift.request] += shift.to - shift.from;  // it is read again without them
      }
      return;
    }
    check(batch);
    if (status != DecodeStatus::ok) return;
    for (const BatchPart& part : batch.parts) compute(batch, part, result);
  }

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
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const bool living = !ended_.contains(slots_[i].owner) && !undone_.contains(static_cast<std::int32_t>(i));
      if (living) sum += static_cast<TokenCount>(slots_[i].history.size());
    }
    return sum;
  }
  RequestId owner(SlotId slot) const { return slots_[static_cast<std::size_t>(slot.value)].owner; }
  // Rows of prompts that were computed, those of some request among them.
  std::uint64_t prompt_rows() const { return prompt_rows_; }
  TokenCount prompt_rows(std::uint64_t id) const {
    const auto found = prompt_rows_of_.find(RequestId{id});
    return found != prompt_rows_of_.end() ? found->second : 0;
  }
  // Of next tokens, that were checked.
  std::uint64_t draft_tokens() const { return draft_tokens_; }
  std::uint64_t accepted_tokens() const { return accepted_tokens_; }
  std::uint64_t forced_tokens() const { return forced_tokens_; }
  std::uint64_t waits() const { return waits_; }

 private:
  void check(const Batch& batch) {
    expect(!batch.empty() && batch.rows.empty() == batch.parts.empty(), "an empty batch was run");
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
      expect(decodes_now || part.rows == 1 || part.rows <= width_of(batch.parts.back()), "a hole is filled too much");
      expect(decodes_now || dense_slots_, "a row of a prompt among the decoding ones for no reason");
    } else {
      expect(!decodes_now, "a decoding request in a prefill batch");
    }
    if (position + part.rows > length) return expect(false, "rows beyond the last token");
    expect(part.samples == (position + part.rows == length && said(request.id) < request.max_tokens),
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
    const auto several = [&](const BatchPart& other) { return draft_tokens(other) || other.rows > 1; };
    const bool use = batch.kind == Batch::Kind::prefill || std::any_of(batch.parts.begin(), batch.parts.end(), several);
    expect(dense_slots_ && use, "a part is filled up where it is of no use");
    expect(held(part.slot) + width_of(part) <= layout_.cells_per_slot, "padding beyond the cells of a slot");
    TokenCount position = held(part.slot) + part.rows + part.draft_tokens;
    for (std::int32_t i = part.rows + part.draft_tokens; i < width_of(part); ++i, ++position) {
      const Row& row = batch.rows[static_cast<std::size_t>(part.first_row + i)];
      expect(row.slot == part.slot && row.position == position && !row.output, "padding that does not follow its part");
    }
  }

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
    std::int32_t right = 0;
    for (bool goes_on = part.samples; goes_on;) {
      const FakeScript script = scripts_[slot.owner];
      if (waits(part, slot, right, result)) break;
      slot.sampled = true;
      goes_on = say(fake_next(slot.history, script.repeats), false, batch, part, right, result);
      TokenCount forced = fake_forced(result.samples.back().token, script);
      while (forced-- > 0 && !result.samples.back().ends() && said(slot.owner) < part.request->max_tokens) {
        const Token next = fake_next(tokens_of(*part.request), script.repeats);
        goes_on = say(next, true, batch, part, right, result) && goes_on;
        ++forced_tokens_;
      }
    }
  }

  // The row that was to be sampled is forgotten, or all of the part.
  bool waits(const BatchPart& part, Slot& slot, std::int32_t right, BatchResult& result) {
    const int most = scripts_[slot.owner].waits;
    int& waited = waited_[slot.owner];
    if (waited++ < most) {
      if (right == 0) {
        slot.history.resize(slot.history.size() - static_cast<std::size_t>(rows_put_off(part)));
        result.put_off.push_back(slot.owner);
      } else {
        slot.history.pop_back();
        result.samples.back().computed = false;
        --accepted_tokens_;
      }
      ++waits_;
      return true;
    }
    waited = 0;
    return false;
  }

  // True: its row is there.
  bool say(Token token, bool forced, const Batch& batch, const BatchPart& part, std::int32_t& right,
           BatchResult& result) {
    const bool all_there = result.samples.empty() || !forced || result.samples.back().computed;
    Slot& slot = at(part.slot);
    std::vector<Token>& answer = answers_[slot.owner];
    answer.push_back(token);
    Sample& out = result.samples.emplace_back(fake_sample(slot.owner, answer, scripts_[slot.owner]));
    out.forced = forced;
    if (out.ends() || !all_there || right == part.draft_tokens) return false;
    if (batch.rows[static_cast<std::size_t>(part.last_row() + 1 + right)].token != token) return false;
    out.computed = true;
    slot.history.push_back(token);
    ++right;
    ++accepted_tokens_;
    return true;
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

  const TokenCount rows_max_;
  std::map<RequestId, FakeScript> scripts_;
  std::map<RequestId, TokenCount> prompt_rows_of_;
  std::set<std::int32_t> undone_;    // slots whose shift a failed restore prevented: trimmed in the next step
  std::map<RequestId, int> waited_;  // for the next token
  std::uint64_t waits_ = 0;
  std::uint64_t prompt_rows_ = 0;
  std::uint64_t draft_tokens_ = 0;
  std::uint64_t accepted_tokens_ = 0;
  std::uint64_t forced_tokens_ = 0;
};

}  // namespace chasqui
