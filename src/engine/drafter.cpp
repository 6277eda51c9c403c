#include "engine/drafter.h"

#include <algorithm>

#include "base/log.h"
#include "model/logit_row.h"

namespace chasqui {

Drafter::Drafter(std::unique_ptr<Model> model, TokenCount vocabulary)
    : model_(std::move(model)), vocabulary_(vocabulary), held_(static_cast<std::size_t>(model_->shape().slots), 0) {
  CHECK(model_->shape().trims_anywhere, "a draft model has to take back rejected draft tokens");
}

void Drafter::follow(const Batch& batch) {
  const auto held = [this](SlotId slot) -> TokenCount& { return held_[static_cast<std::size_t>(slot.value)]; };
  const auto empty = [&](SlotId slot) {
    if (held(slot) > 0) model_->trim(slot, 0);
    held(slot) = 0;
  };
  for (const SlotId slot : batch.trims) empty(slot);
  for (const SlotMove& move : batch.moves) {
    if (held(move.from) > 0 && held(move.to) > 0) {
      model_->exchange(move.from, move.to);
    } else if (held(move.from) > 0) {
      model_->move(move.from, move.to);
    } else if (held(move.to) > 0) {
      model_->move(move.to, move.from);
    }
    std::swap(held(move.from), held(move.to));
  }
}

void Drafter::fall_asleep() {
  model_->fall_asleep();
  std::ranges::fill(held_, 0);
}

// Each slot goes on where its first row is: what it holds from there on was rejected.
bool Drafter::compute(const std::vector<Row>& rows, Batch::Kind kind) {
  own_.clear();
  own_.kind = kind;
  own_.rows = rows;
  // The draft model cannot draft well after a token that it does not know, or after a place of a picture, and must not
  // stop the others.
  for (Row& row : own_.rows) row.token = row.token >= 0 && row.token < model_->shape().vocabulary ? row.token : 0;
  SlotId before;
  for (const Row& row : rows) {
    TokenCount& held = held_[static_cast<std::size_t>(row.slot.value)];
    if (row.slot != before && row.position < held) model_->trim(row.slot, row.position);
    before = row.slot;
    held = row.position + 1;
  }
  if (model_->decode(own_) == DecodeStatus::ok) return true;
  // The slots hold what they held before.
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    held_[static_cast<std::size_t>(row->slot.value)] = row->position;
  }
  return false;
}

void Drafter::draft(Batch& batch, BatchResult& result, const Clock& clock) {
  const Drafting& drafting = batch.drafting;
  bool done = true;
  if (!drafting.reading.empty()) {
    const TimePoint started = clock.now();
    done = compute(drafting.reading, Batch::Kind::prefill);
    result.draft_reading = clock.now() - started;
  }
  if (done && !drafting.rows.empty()) {
    const TimePoint started = clock.now();
    done = write_draft_tokens(batch);
    result.drafting = clock.now() - started;
  }
  result.drafted = done;
  if (!done) log_warning("the draft model failed; its draft tokens will be rejected", {{"rows", drafting.rows.size()}});
}

Token Drafter::best(std::int32_t row) {
  const Token token = largest(model_->logits(row));
  return token >= 0 && token < vocabulary_ ? token : 0;
}

// One pass for each draft token. Every pass but the first has one row for each sequence that wants one more.
bool Drafter::write_draft_tokens(Batch& batch) {
  std::vector<Row> rows = batch.drafting.rows;
  std::vector<Row> next;
  for (std::int32_t place = 0; !rows.empty(); ++place) {
    if (!compute(rows, Batch::Kind::decode)) return false;
    next.clear();
    auto row = rows.begin();
    for (const BatchPart& part : batch.parts) {
      if (part.draft_tokens <= place) continue;
      while (row->slot != part.slot || !row->output) ++row;
      const Token token = best(static_cast<std::int32_t>(row - rows.begin()));
      batch.rows[static_cast<std::size_t>(part.last_row() + 1 + place)].token = token;
      if (place + 1 < part.draft_tokens) next.push_back({token, row->position + 1, part.slot, true});
    }
    std::swap(rows, next);
  }
  return true;
}

}  // namespace chasqui
