// The part of LlamaModel that forgets, moves and copies what slots hold.
#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include <llama.h>

#include "base/log.h"
#include "model/llama_model.h"
#include "model/llama_runtime.h"

namespace chasqui {

void LlamaModel::trim(SlotId slot, TokenCount keep) {
  CHECK(slot.value >= 0 && slot.value < shape_.slots && keep >= 0);
  changes(slot);
  if (heads_) heads_->trim(slot, keep);
  SlotPositions& positions = positions_of(slot);
  if (positions.ends_inside(keep)) return;
  keep = positions.whole(keep);  // rows that go on inside of what is gone will fail
  const bool done = llama_memory_seq_rm(llama_get_memory(context_), slot.value, positions.position(keep), -1);
  CHECK(done, "this model's memory cannot be cut there");
  positions.trim(keep);
}

// A state that was partly advanced cannot be taken back, so it is copied before a step that may be cut: of one slot,
// because libllama moves the states of several to be neighbours while it computes. What is not a state is trimmed.
bool LlamaModel::keep_state(const Batch& batch) {
  if (batch.cut_by == Batch::kUncut || batch.parts.size() != 1 || offloads_to_gpu()) return false;
  const Row& first = batch.rows.front();
  if (first.position == 0) return true;
  try {
    state_.resize(llama_state_seq_get_size_ext(context_, first.slot.value, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY));
  } catch (const std::bad_alloc&) {
    return false;
  }
  auto* bytes = reinterpret_cast<std::uint8_t*>(state_.data());
  return llama_state_seq_get_data_ext(context_, bytes, state_.size(), first.slot.value,
                                      LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) == state_.size();
}

bool LlamaModel::bring_state_back(SlotId slot) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(state_.data());
  return llama_state_seq_set_data_ext(context_, bytes, state_.size(), slot.value, LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) >
         0;
}

// libllama removes only the ubatch that failed; with a stream per slot, earlier ones of the same batch stay. False: a
// slot could not be brought back, and is empty.
bool LlamaModel::roll_back(const Batch& batch) {
  const bool inside = goes_on_inside(batch);
  const llama_memory_t memory = llama_get_memory(context_);
  bool all = true;
  SlotId before;
  for (const Row& row : batch.rows) {
    if (row.slot == before) continue;
    before = row.slot;
    const TokenCount place = inside ? batch.unit->begin : row.position;  // what it had of the picture is gone
    SlotPositions& positions = positions_of(row.slot);
    const TokenCount position = positions.position(place);
    positions.trim(place);
    const bool has_state = !shape_.trims_anywhere && cuttable_ && position > 0;
    const bool back = !has_state || bring_state_back(row.slot);
    if (back && llama_memory_seq_rm(memory, row.slot.value, position, -1)) continue;
    log_warning("a slot lost its state in a failed decode", {{"slot", row.slot.value}});
    empty(row.slot);
    all = false;
  }
  return all;
}

void LlamaModel::empty(SlotId slot) {
  llama_memory_seq_rm(llama_get_memory(context_), slot.value, -1, -1);
  positions_of(slot).clear();
}

// libllama turns the keys in the next decode, which must not be cut then: it would turn them again.
void LlamaModel::shift(SlotId slot, TokenCount from, TokenCount to) {
  CHECK(shape_.shifts && from >= 0 && from < to && to < held(slot), "a shift of what the slot does not hold");
  changes(slot);
  if (heads_) heads_->forget(slot);
  const llama_memory_t memory = llama_get_memory(context_);
  CHECK(llama_memory_seq_rm(memory, slot.value, from, to), "this model's memory cannot be cut there");
  llama_memory_seq_add(memory, slot.value, to, -1, from - to);
  uncut_ = true;
}

// Through a buffer of just the cells in use: llama_memory_seq_cp between streams copies all cells of the slot and has
// the graphs made anew. For 1,200 tokens of a 0.5 B model in 4,096 cells: 2.3 ms against 3.6, and 0.8 for 160 tokens.
// But where a window slides, the buffer has only that, and the slot could not be trimmed any more.
void LlamaModel::move(SlotId from, SlotId to) {
  changes(from);
  changes(to);
  if (heads_) heads_->forget(from);
  if (heads_) heads_->forget(to);
  const bool all_of_it = shape_.cuts_snapshots || !shape_.trims_anywhere;
  if (!all_of_it || !move_by_copy(from, to)) {
    llama_memory_seq_cp(llama_get_memory(context_), from.value, to.value, -1, -1);
  }
  positions_of(to) = std::move(positions_of(from));
  empty(from);
}

// The buffer goes when the state is there: that of the longest slot may have gigabytes, and its next move be hours
// away.
bool LlamaModel::move_by_copy(SlotId from, SlotId to) {
  std::size_t size = 0;
  std::unique_ptr<std::uint8_t[]> state;
  try {
    size = llama_state_seq_get_size(context_, from.value);
    state = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  } catch (const std::bad_alloc&) {
    return false;
  }
  const std::size_t written = llama_state_seq_get_data(context_, state.get(), size, from.value);
  return written > 0 && llama_state_seq_set_data(context_, state.get(), written, to.value) > 0;
}

void LlamaModel::exchange(SlotId a, SlotId b) {
  if (held(a) == 0 || held(b) == 0) {
    if (held(a) > 0) return move(a, b);
    if (held(b) > 0) move(b, a);
    return;
  }
  changes(a);
  changes(b);
  if (heads_) heads_->forget(a);
  if (heads_) heads_->forget(b);
  const llama_memory_t memory = llama_get_memory(context_);
  const std::size_t size = llama_state_seq_get_size(context_, a.value);
  const auto state = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  const std::size_t written = llama_state_seq_get_data(context_, state.get(), size, a.value);
  llama_memory_seq_rm(memory, a.value, -1, -1);
  const bool there = written > 0 && move_by_copy(b, a);
  llama_memory_seq_rm(memory, b.value, -1, -1);
  const bool back = there && llama_state_seq_set_data(context_, state.get(), written, b.value) > 0;
  CHECK(back, "conservation: the content of a slot was lost on its way");
  std::swap(positions_of(a), positions_of(b));
}

TokenCount LlamaModel::held(SlotId slot) const {
  return positions_of(slot).places(llama_memory_seq_pos_max(llama_get_memory(context_), slot.value));
}

void LlamaModel::changes(SlotId slot) {
  if (slot == looked_at_) looked_at_ = SlotId{};
  if (slot == filled_) filled_ = SlotId{};
}

KvSnapshotPtr LlamaModel::copy_out(SlotId slot, TokenCount from, TokenCount to) {
  try {
    if (layout_) return copy_blocks(slot, from, to);
    CHECK(from == 0, "a part of what this model can only copy whole");
    const std::size_t size = llama_state_seq_get_size(context_, slot.value);
    if (size == 0 || held(slot) != to) return nullptr;
    const std::size_t behind = several_dimensions_ ? positions_of(slot).bytes() : 0;
    const auto copy = std::make_shared<KvSnapshot>(size + behind, to);
    if (behind > 0) positions_of(slot).write(copy->bytes().last(behind));
    auto* bytes = reinterpret_cast<std::uint8_t*>(copy->bytes().data());
    return llama_state_seq_get_data(context_, bytes, size, slot.value) == size ? copy : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool LlamaModel::look_at(SlotId slot) {
  if (slot == looked_at_) return true;
  auto place = layout_->place_of(context_, slot, held(slot));
  if (!place) return false;
  place_ = std::move(*place);
  looked_at_ = slot;
  return true;
}

KvSnapshotPtr LlamaModel::copy_blocks(SlotId slot, TokenCount from, TokenCount to) {
  CHECK(from % shape_.kv_block == 0 && from < to, "a copy that does not begin with a block");
  if (!look_at(slot)) return nullptr;
  if (std::cmp_less(place_.cells.size(), to)) return nullptr;
  auto copy = KvSnapshot::with_room(layout_->bytes_per_token() * static_cast<std::size_t>(to - from), to - from,
                                    shape_.kv_block);
  if (!copy) return nullptr;
  for (std::size_t i = 0; i < copy->blocks().size(); ++i) {
    const TokenCount count = copy->blocks()[i]->tokens();
    layout_->copy_out(place_, from, count, copy->writable(i));
    from += count;
  }
  return copy;
}

// Only for what snapshot() made: libllama finds bytes that are cut short, not all that are changed.
bool LlamaModel::restore(SlotId slot, const KvSnapshot& snapshot, TokenCount keep) {
  if (keep != snapshot.tokens() && !shape_.cuts_snapshots) return false;
  if (snapshot.block_tokens() > 0) return restore_piece(slot, snapshot, keep, 0, keep);
  changes(slot);
  if (heads_) heads_->forget(slot);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(snapshot.bytes().data());
  std::size_t size = snapshot.bytes().size();
  SlotPositions& positions = positions_of(slot);
  if (several_dimensions_) {
    auto copied = SlotPositions::of_copy(snapshot.bytes());
    if (!copied) return false;
    size -= copied->bytes();
    positions = std::move(*copied);
  }
  bool done = llama_state_seq_set_data(context_, bytes, size, slot.value) == size && held(slot) == snapshot.tokens();
  if (done && keep < snapshot.tokens()) {
    done = keep == positions.whole(keep) &&
           llama_memory_seq_rm(llama_get_memory(context_), slot.value, positions.position(keep), -1);
    positions.trim(keep);
  }
  if (!done) empty(slot);
  return done;
}

// Where the `keep` positions of the slot are that pieces go into: given to it with the first. Null: there is no room,
// and the slot is empty.
const LlamaKvLayout::Place* LlamaModel::place_for(SlotId slot, TokenCount keep, TokenCount from) {
  if (from > 0 && slot == filled_) return &filled_place_;
  changes(slot);
  if (heads_) heads_->forget(slot);
  std::optional<LlamaKvLayout::Place> place;
  try {
    place = from > 0 ? layout_->place_of(context_, slot, keep) : layout_->make_place(context_, slot, keep);
  } catch (const std::bad_alloc&) {
  }
  if (!place) {
    empty(slot);
    return nullptr;
  }
  filled_ = slot;
  filled_place_ = std::move(*place);
  return &filled_place_;
}

bool LlamaModel::restore_piece(SlotId slot, const KvSnapshot& snapshot, TokenCount keep, TokenCount from,
                               TokenCount to) {
  const bool ours = layout_ && snapshot.block_tokens() == shape_.kv_block &&
                    snapshot.size() == layout_->bytes_per_token() * static_cast<std::size_t>(snapshot.tokens());
  if (!ours) {
    if (from > 0) trim(slot, 0);
    return false;
  }
  const LlamaKvLayout::Place* place = place_for(slot, keep, from);
  if (place == nullptr) return false;
  while (from < to) {
    const KvBlock& block = *snapshot.blocks()[static_cast<std::size_t>(from / shape_.kv_block)];
    const TokenCount count = std::min(block.tokens(), to - from);
    layout_->copy_in(*place, from, count, block.bytes(), block.tokens());
    from += count;
  }
  return true;
}

bool LlamaModel::copy_piece(SlotId source, SlotId slot, TokenCount keep, TokenCount from, TokenCount to) {
  CHECK(layout_ && held(source) >= keep, "a copy of what the slot does not hold");
  const LlamaKvLayout::Place* place = place_for(slot, keep, from);
  if (place == nullptr) return false;
  if (!look_at(source)) return trim(slot, 0), false;
  while (from < to) {
    const TokenCount count = std::min(shape_.kv_block, to - from);
    piece_.resize(layout_->bytes_per_token() * static_cast<std::size_t>(count));
    layout_->copy_out(place_, from, count, piece_);
    layout_->copy_in(*place, from, count, piece_, count);
    from += count;
  }
  return true;
}

}  // namespace chasqui
