#include "sim/checked_model.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace chasqui {

CheckedModel::CheckedModel(const KvLedger::Layout& layout, TokenCount rows_max, SimRequestTable& lives, Faults& faults)
    : layout_(layout),
      rows_max_(rows_max),
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
  for (std::size_t i = 0; i < batch.restores.size(); ++i) {
    if (!restore(batch.restores[i])) result.not_restored.push_back(i);
  }
  for (const SlotMove& each : batch.moves) move(each.from, each.to);
}

KvSnapshotPtr CheckedModel::save(const SlotSave& save) {
  if (!exists(save.slot)) return faults_.expect(false, "batch: save of a slot that does not exist"), nullptr;
  const Slot& from = slot(save.slot);
  const bool right = save.tokens > 0 && save.tokens == from.length;
  faults_.expect(right, "batch: save of what the slot does not hold");
  if (!right) return nullptr;
  const auto copy = std::make_shared<KvSnapshot>(static_cast<std::size_t>(save.tokens) * kTokenBytes, save.tokens);
  std::memcpy(copy->bytes().data(), from.tokens.data(), copy->bytes().size());
  saved_tokens_ += static_cast<std::uint64_t>(save.tokens);
  return copy;
}

bool CheckedModel::restore(const SlotRestore& restore) {
  SimRequest* life = lives_.find(restore.request);
  const KvSnapshot& snapshot = *restore.snapshot;
  const auto expect = [&](bool kept, std::string_view promise) {
    faults_.expect(kept, promise, life != nullptr ? life->serial : 0);
    return kept;
  };
  if (!expect(life != nullptr, "one-terminal: restore for a request that has ended")) return true;
  if (!expect(exists(restore.slot), "batch: restore into a slot that does not exist")) return true;
  Slot& to = slot(restore.slot);
  const bool fits = restore.keep > 0 && restore.keep <= snapshot.tokens() && restore.keep < life->known;
  if (!expect(fits, "batch: restore of more than there is, or of all that is known")) return true;
  if (!expect(to.length == 0, "batch: restore into a slot that holds something")) return true;
  expect(!life->slot.valid(), "batch: restore for a request that has a slot");
  expect(held_ + snapshot.tokens() <= layout_.cells, "bounded: no room for the whole snapshot");
  if (restore_fails_) {
    restore_fails_ = false;
    return false;
  }
  const std::vector<Token>& prompt = life->request->prompt;
  for (TokenCount i = 0; i < restore.keep; ++i) {
    Token token = 0;
    const auto index = static_cast<std::size_t>(i);
    std::memcpy(&token, &snapshot.bytes()[index * kTokenBytes], kTokenBytes);
    expect(index >= prompt.size() || token == prompt[index], "tokens: restored other tokens than the prompt's");
    to.append(token);
  }
  to.owner = restore.request;
  held_ += restore.keep;
  held_by_living_ += restore.keep;
  restored_tokens_ += static_cast<std::uint64_t>(restore.keep);
  life->slot = restore.slot;
  // All but the newest of what it has said: the next row is a decode row.
  life->decoding = life->generated > 0 && restore.keep == life->known - 1;
  return true;
}

void CheckedModel::ended(SimRequest& life) {
  if (life.slot.valid()) held_by_living_ -= slot(life.slot).length;
}

void CheckedModel::trim(SlotId id) {
  if (!exists(id)) return faults_.expect(false, "batch: trim of a slot that does not exist");
  Slot& trimmed = slot(id);
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
                         next_row + static_cast<std::size_t>(part.rows + part.padding) <= batch.rows.size();
    faults_.expect(follows, "batch: parts do not follow each other");
    faults_.expect(previous < part.slot && exists(part.slot), "batch: slots do not ascend");
    previous = part.slot;
    if (life == nullptr || !follows || !exists(part.slot)) return false;
    next_row += static_cast<std::size_t>(part.rows + part.padding);
    check_part(batch, part, *life);
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
  expect(end + part.padding <= layout_.cells_per_slot, "bounded: a slot holds too many cells");
  expect(end <= life.known, "batch: rows beyond the tokens that are known");
  expect(part.samples == (end == life.known && life.request->max_tokens > 0),
         "batch: the last known token samples and no other");
  if (batch.kind == Batch::Kind::decode) {
    expect(part.rows == 1, "batch: a part of a decode batch is one row");
  } else {
    expect(!life.decoding, "batch: a decoding sequence in a prefill batch");
  }
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
  for (std::int32_t i = 0; i < part.padding; ++i, ++position) {
    const Row& row = batch.rows[static_cast<std::size_t>(part.first_row + part.rows + i)];
    expect(row.slot == part.slot && row.position == position && !row.output, "batch: padding does not follow its part");
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
  life.started = true;
  life.last_row_step = step;
  if (part.samples) sample(life, filled, result);
}

void CheckedModel::sample(SimRequest& life, const Slot& from, BatchResult& result) {
  faults_.expect(from.history == life.history, "tokens: the slot does not hold this request's history", life.serial);
  Sample& sample = result.samples.emplace_back();
  sample.request = life.request->id;
  sample.token = next_token(from.history);
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
