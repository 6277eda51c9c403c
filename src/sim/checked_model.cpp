#include "sim/checked_model.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace chasqui {
namespace {

std::int32_t width_of(const BatchPart& part) { return part.rows + part.draft_tokens + part.padding; }

// What tokens are mixed with in a snapshot, so that those of other adapters are others.
Token mask_of(std::uint64_t adapters) {
  return adapters == 0 ? 0 : static_cast<Token>(hash_bits(adapters) & 0x3FFFFFFF);
}

// What the model says after `history`, as the n-th token of an answer: some of it is the prompt again.
Token token_of(const SimRequest& life, std::uint64_t history, TokenCount n) {
  const std::vector<Token>& prompt = life.request->prompt;
  const bool again =
      life.plan.repeats > 0 && static_cast<double>(hash_bits(history) >> 11) * 0x1.0p-53 < life.plan.repeats;
  return again ? prompt[static_cast<std::size_t>(n) % prompt.size()] : next_token(history);
}

}  // namespace

void append_answer(const SimRequest& life, std::vector<Token>& out) {
  std::uint64_t history = 0;
  for (const Token token : life.request->prompt) history = extend_history(history, token);
  for (TokenCount n = 0; n < life.said; ++n) {
    out.push_back(token_of(life, history, n));
    history = extend_history(history, out.back());
  }
}

CheckedModel::CheckedModel(const KvLedger::Layout& layout, TokenCount rows_max, TokenCount block,
                           SimRequestTable& lives, Faults& faults)
    : layout_(layout),
      rows_max_(rows_max),
      block_(block),
      lives_(lives),
      faults_(faults),
      slots_(static_cast<std::size_t>(layout.slots)) {}

void CheckedModel::Slot::append(Token token) {
  const auto at = static_cast<std::size_t>(length);
  if (at < tokens.size()) {
    tokens[at] = token;
  } else {
    tokens.push_back(token);
  }
  history = extend_history(history, token);
  ++length;
}

void CheckedModel::Slot::clear() {
  history = 0;
  length = 0;
  owner = RequestId{};
  adapters = 0;
}

void CheckedModel::run(const Batch& batch, DecodeStatus status, std::uint64_t step, BatchResult& result) {
  result.clear();
  result.status = status;
  prepare(batch, result);
  if (!result.not_restored.empty()) {
    result.status = DecodeStatus::aborted;  // as the runner does it
    return;
  }
  if (!check(batch) || status != DecodeStatus::ok) return;
  for (const BatchPart& part : batch.parts) compute(batch, part, step, result);
}

void CheckedModel::prepare(const Batch& batch, BatchResult& result) {
  for (const SlotSave& each : batch.saves) result.snapshots.push_back(save(each));
  for (const SlotId trimmed : batch.trims) trim(trimmed);
  for (const SlotReuse& each : batch.reuses) reuse(each);
  for (std::size_t i = 0; i < batch.restores.size(); ++i) {
    if (!restore(batch.restores[i])) result.not_restored.push_back(i);
  }
  for (const SlotMove& each : batch.moves) each.exchange ? exchange(each.from, each.to) : move(each.from, each.to);
}

KvSnapshotPtr CheckedModel::save(const SlotSave& save) {
  if (!exists(save.slot)) return faults_.expect(false, "batch: save of a slot that does not exist"), nullptr;
  const Slot& from = slot(save.slot);
  const bool all = save.from == 0 && save.tokens == from.length;
  const bool range = block_ > 0 && save.from >= 0 && save.from % block_ == 0 && save.tokens <= from.length;
  const TokenCount tokens = save.tokens - save.from;
  const bool right = tokens > 0 && (all || range);
  faults_.expect(right, "batch: save of what the slot does not hold");
  if (!right) return nullptr;
  const auto copy = KvSnapshot::with_room(static_cast<std::size_t>(tokens) * kTokenBytes, tokens, block_);
  const Token mask = mask_of(from.adapters);
  auto next = from.tokens.begin() + save.from;
  for (std::size_t i = 0; i < copy->blocks().size(); ++i) {
    const std::span<std::byte> bytes = copy->writable(i);
    for (std::size_t at = 0; at < bytes.size(); at += kTokenBytes) {
      const Token token = *next++ ^ mask;
      std::memcpy(&bytes[at], &token, kTokenBytes);
    }
  }
  saved_tokens_ += static_cast<std::uint64_t>(tokens);
  return copy;
}

void CheckedModel::reuse(const SlotReuse& reuse) {
  SimRequest* life = lives_.find(reuse.request);
  if (life == nullptr) return faults_.expect(false, "one-terminal: a slot goes on for a request that has ended");
  Slot& to = slot(reuse.slot);
  faults_.expect(lives_.find(to.owner) == nullptr, "batch: a slot goes on whose request has not ended", life->serial);
  const bool fits = reuse.keep > 0 && reuse.keep <= to.length && reuse.keep < life->known;
  faults_.expect(fits, "batch: more goes on in a slot than it holds, or all that is known", life->serial);
  if (!fits) return;
  faults_.expect(to.adapters == id_of(life->request->adapters.get()), "tokens: of other adapters", life->serial);
  held_ -= to.length;
  std::vector<Token> tokens(to.tokens.begin(), to.tokens.begin() + reuse.keep);
  to.clear();
  fill(*life, reuse.slot, tokens);
}

// What a snapshot or a slot has of this is in the slot now.
void CheckedModel::fill(SimRequest& life, SlotId id, std::span<const Token> tokens) {
  Slot& to = slot(id);
  to.adapters = id_of(life.request->adapters.get());
  const std::vector<Token>& prompt = life.request->prompt;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    faults_.expect(i >= prompt.size() || tokens[i] == prompt[i], "tokens: restored other tokens than the prompt's",
                   life.serial);
    to.append(tokens[i]);
  }
  to.owner = life.request->id;
  held_ += to.length;
  held_by_living_ += to.length;
  restored_tokens_ += tokens.size();
  life.slot = id;
  // All but the newest of what it has said: the next row is a decode row.
  life.decoding = life.generated > 0 && to.length == life.known - 1;
}

std::vector<Token> CheckedModel::tokens_of(const KvSnapshot& snapshot, TokenCount keep, std::uint64_t adapters) {
  const Token mask = mask_of(adapters);
  const TokenCount block_tokens = snapshot.block_tokens() > 0 ? snapshot.block_tokens() : snapshot.tokens();
  std::span<const std::byte> bytes;
  std::vector<Token> tokens;
  for (TokenCount i = 0; i < keep; ++i) {
    if (i % block_tokens == 0) bytes = snapshot.blocks()[static_cast<std::size_t>(i / block_tokens)]->bytes();
    Token token = 0;
    std::memcpy(&token, &bytes[static_cast<std::size_t>(i % block_tokens) * kTokenBytes], kTokenBytes);
    tokens.push_back(token ^ mask);
  }
  return tokens;
}

bool CheckedModel::restore(const SlotRestore& restore) {
  SimRequest* life = lives_.find(restore.request);
  const auto expect = [&](bool kept, std::string_view promise) {
    faults_.expect(kept, promise, life != nullptr ? life->serial : 0);
    return kept;
  };
  if (!expect(life != nullptr, "one-terminal: restore for a request that has ended")) return true;
  if (!expect(exists(restore.slot), "batch: restore into a slot that does not exist")) return true;
  Slot& to = slot(restore.slot);
  const bool within = restore.snapshot == nullptr && exists(restore.source);
  const TokenCount there = within ? slot(restore.source).length : restore.snapshot->tokens();
  const bool fits = restore.keep > 0 && restore.keep <= there && restore.keep < life->known;
  if (!expect(fits, "batch: restore of more than there is, or of all that is known")) return true;
  if (!expect(to.length == 0, "batch: restore into a slot that holds something")) return true;
  expect(!life->slot.valid(), "batch: restore for a request that has a slot");
  expect(held_ + (restore.whole() ? there : restore.keep) <= layout_.cells, "bounded: no room for the whole snapshot");
  if (restore_fails_) {
    restore_fails_ = false;
    to.coming = 0;
    return false;
  }
  const bool follows = restore.from == to.coming && restore.from < restore.end() && restore.end() <= restore.keep;
  if (!expect(follows, "batch: a piece that does not follow the one before")) return true;
  to.coming = restore.end() < restore.keep ? restore.end() : 0;
  if (to.coming > 0) return true;
  if (within) {
    const Slot& from = slot(restore.source);
    expect(from.adapters == id_of(life->request->adapters.get()), "tokens: of other adapters");
    const std::vector<Token> tokens(from.tokens.begin(), from.tokens.begin() + restore.keep);
    fill(*life, restore.slot, tokens);
  } else {
    fill(*life, restore.slot, tokens_of(*restore.snapshot, restore.keep, id_of(life->request->adapters.get())));
  }
  return true;
}

void CheckedModel::ended(SimRequest& life) {
  if (life.slot.valid()) held_by_living_ -= slot(life.slot).length;
}

void CheckedModel::trim(SlotId id) {
  if (!exists(id)) return faults_.expect(false, "batch: trim of a slot that does not exist");
  Slot& trimmed = slot(id);
  trimmed.coming = 0;
  held_ -= trimmed.length;
  if (SimRequest* life = lives_.find(trimmed.owner); life != nullptr && trimmed.length > 0) {
    held_by_living_ -= trimmed.length;  // preempted: computed again later
    life->slot = SlotId{};
    life->decoding = false;
    ++life->preempted;
    ++preemptions_;
  }
  trimmed.clear();
}

void CheckedModel::move(SlotId from, SlotId to) {
  if (!exists(from) || !exists(to)) return faults_.expect(false, "batch: move of a slot that does not exist");
  faults_.expect(slot(to).length == 0, "batch: move into a slot that holds something");
  std::swap(slot(to), slot(from));
  slot(from).clear();
  ++moves_;
  if (SimRequest* life = lives_.find(slot(to).owner); life != nullptr) life->slot = to;
}

void CheckedModel::exchange(SlotId a, SlotId b) {
  if (!exists(a) || !exists(b)) return faults_.expect(false, "batch: exchange with a slot that does not exist");
  std::swap(slot(a), slot(b));
  ++moves_;
  if (SimRequest* life = lives_.find(slot(a).owner); life != nullptr) life->slot = a;
  if (SimRequest* life = lives_.find(slot(b).owner); life != nullptr) life->slot = b;
}

// Others than what will be said are drafted in place of the rest.
void CheckedModel::draft(Batch& batch, double acceptance, Random& dice) const {
  for (const BatchPart& part : batch.parts) {
    const SimRequest* life = part.draft_tokens > 0 ? lives_.find(part.request->id) : nullptr;
    if (life == nullptr) continue;
    std::uint64_t history = life->history;
    auto row = batch.rows.begin() + part.last_row() + 1;
    for (std::int32_t i = 0; i < part.draft_tokens; ++i, ++row) {
      const Token token = token_of(*life, history, life->generated + i);
      row->token = dice.chance(acceptance) ? token : (token + 1) % kSimulatedVocabulary;
      history = extend_history(history, token);
    }
  }
}

bool CheckedModel::check(const Batch& batch) {
  const std::uint64_t before = faults_.count();
  faults_.expect(!batch.empty() && batch.rows.empty() == batch.parts.empty(), "batch: an empty batch was run");
  faults_.expect(batch.rows.size() <= static_cast<std::size_t>(rows_max_), "bounded: more rows than rows_max");
  std::size_t next_row = 0;
  SlotId previous;
  for (const BatchPart& part : batch.parts) {
    const SimRequest* life = lives_.find(part.request->id);
    faults_.expect(life != nullptr, "one-terminal: rows of a request that has ended");
    const bool follows = part.first_row == static_cast<std::int32_t>(next_row) && part.rows > 0 &&
                         next_row + static_cast<std::size_t>(width_of(part)) <= batch.rows.size();
    faults_.expect(follows, "batch: parts do not follow each other");
    faults_.expect(previous < part.slot && exists(part.slot), "batch: slots do not ascend");
    previous = part.slot;
    if (life == nullptr || !follows || !exists(part.slot)) return false;
    next_row += static_cast<std::size_t>(width_of(part));
    check_part(batch, part, *life);
    check_rows(batch, part, *life);
  }
  faults_.expect(next_row + static_cast<std::size_t>(batch.padding) == batch.rows.size(),
                 "batch: rows that belong to no part");
  for (std::size_t i = next_row; i < batch.rows.size(); ++i) {
    const SlotId padded = batch.rows[i].slot;
    faults_.expect(previous < padded && exists(padded) && slot(padded).length == 0, "batch: padding in a slot in use");
    previous = padded;
  }
  faults_.expect(held_ + static_cast<TokenCount>(batch.rows.size()) <= layout_.cells,
                 "bounded: the context holds too many cells");
  return faults_.count() == before;
}

void CheckedModel::check_part(const Batch& batch, const BatchPart& part, const SimRequest& life) {
  const Slot& held = slot(part.slot);
  const auto expect = [&](bool kept, std::string_view promise) { faults_.expect(kept, promise, life.serial); };
  expect(held.length == 0 || held.owner == part.request->id, "batch: a slot was used again without a trim");
  expect(!life.slot.valid() || life.slot == part.slot, "batch: rows in another slot than before");
  const TokenCount end = held.length + part.rows;
  const TokenCount left = life.request->max_tokens - life.generated;
  expect(held.length + width_of(part) <= layout_.cells_per_slot, "bounded: a slot holds too many cells");
  expect(end <= life.known, "batch: rows beyond the tokens that are known");
  expect(part.samples == (end == life.known && life.request->max_tokens > 0),
         "batch: the last known token samples and no other");
  const AdapterSet* const adapters = life.request->adapters.get();
  expect(same_adapters(adapters, batch.adapters), "batch: rows with other adapters than the request wants");
  expect(held.length == 0 || held.adapters == id_of(adapters), "batch: a slot that other adapters have computed");
  expect(part.draft_tokens == 0 || (life.decoding && part.samples && part.draft_tokens < left),
         "batch: draft tokens beyond the answer, or without a sample");
  if (batch.kind == Batch::Kind::decode) {
    const std::int32_t width = width_of(batch.parts.front());
    expect(part.rows == 1 || (!life.decoding && part.rows <= width), "batch: a part of a decode batch is one row");
  } else {
    expect(!life.decoding && part.draft_tokens == 0, "batch: a decoding sequence in a prefill batch");
  }
}

void CheckedModel::check_rows(const Batch& batch, const BatchPart& part, const SimRequest& life) {
  const auto expect = [&](bool kept, std::string_view promise) { faults_.expect(kept, promise, life.serial); };
  const Slot& held = slot(part.slot);
  const std::vector<Token>& prompt = life.request->prompt;
  TokenCount position = held.length;
  for (std::int32_t i = 0; i < part.rows; ++i, ++position) {
    const Row& row = batch.rows[static_cast<std::size_t>(part.first_row + i)];
    expect(row.slot == part.slot, "batch: a row of another slot in a part");
    expect(row.position == position, "batch: a position that does not continue its slot");
    expect(row.output == (part.tells || (part.samples && i + 1 == part.rows)), "batch: output at the wrong row");
    const auto index = static_cast<std::size_t>(position);
    expect(index >= prompt.size() || row.token == prompt[index], "tokens: not the prompt's token");
  }
  for (std::int32_t i = part.rows; i < width_of(part); ++i, ++position) {
    const Row& row = batch.rows[static_cast<std::size_t>(part.first_row + i)];
    const bool drafted = i < part.rows + part.draft_tokens;
    expect(row.slot == part.slot && row.position == position && row.output == drafted,
           "batch: draft tokens or padding that do not follow their part");
  }
}

void CheckedModel::compute(const Batch& batch, const BatchPart& part, std::uint64_t step, BatchResult& result) {
  SimRequest& life = *lives_.find(part.request->id);
  Slot& filled = slot(part.slot);
  const auto first = batch.rows.begin() + part.first_row;
  const auto prompt = static_cast<TokenCount>(part.request->prompt.size());
  prompt_rows_ += static_cast<std::uint64_t>(std::clamp(prompt - filled.length, 0, part.rows));
  for (auto row = first; row != first + part.rows; ++row) filled.append(row->token);
  filled.owner = part.request->id;
  held_ += part.rows;
  held_by_living_ += part.rows;
  if (life.preempted > 0 && !life.decoding) recomputed_rows_ += static_cast<std::uint64_t>(part.rows);
  life.slot = part.slot;
  filled.adapters = id_of(part.request->adapters.get());
  life.started = true;
  life.last_row_step = step;
  life.decoding = life.generated > 0 && filled.length >= life.known - 1;
  if (!part.samples) return;
  sample(life, filled, result);
  for (auto row = first + part.rows; row != first + part.rows + part.draft_tokens; ++row) {
    if (result.samples.back().ends() || row->token != result.samples.back().token) return;
    result.samples.back().computed = true;
    filled.append(row->token);
    ++held_;
    ++held_by_living_;
    sample(life, filled, result);
  }
}

void CheckedModel::sample(SimRequest& life, const Slot& from, BatchResult& result) {
  faults_.expect(from.history == life.history, "tokens: the slot does not hold this request's history", life.serial);
  Sample& sample = result.samples.emplace_back();
  sample.request = life.request->id;
  sample.token = token_of(life, from.history, life.generated);
  life.history = extend_history(life.history, sample.token);
  ++life.known;
  ++life.generated;
  life.decoding = true;
  sample.end_of_generation = life.plan.max_tokens >= 0 && life.generated == std::max(life.plan.output, 1);
  if (sample.end_of_generation) return;
  char digits[16];
  char* end = std::to_chars(digits, digits + sizeof digits - 1, sample.token).ptr;
  *end++ = ' ';
  sample.text.assign(digits, end);
  life.said_text = extend_text(life.said_text, sample.text);
}

}  // namespace chasqui
