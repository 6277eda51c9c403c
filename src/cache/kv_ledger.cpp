#include "cache/kv_ledger.h"

#include <utility>

#include "base/error.h"

namespace chasqui {

KvLedger::KvLedger(const Layout& layout) : layout_(layout), slots_(static_cast<std::size_t>(layout.slots)) {
  CHECK(layout.slots > 0 && layout.cells_per_slot > 0);
  CHECK(layout.cells_per_slot <= layout.cells, "progress: the longest sequence must fit when it is alone");
  CHECK(layout.unified || layout.cells / layout.slots >= layout.cells_per_slot);
}

std::optional<SlotId> KvLedger::take(TokenCount cells) {
  CHECK(cells <= layout_.cells_per_slot);
  if (!has_free_slot() || cells > cells_free()) return std::nullopt;
  const SlotId id = lowest_free_slot();
  CHECK(take(id, cells));
  return id;
}

bool KvLedger::take(SlotId id, TokenCount cells) {
  CHECK(cells <= layout_.cells_per_slot && is_free(id));
  if (cells > cells_free()) return false;
  slot(id) = Slot{State::taken, cells, 0};
  ++slots_used_;
  cells_reserved_ += cells;
  return true;
}

bool KvLedger::reserve(SlotId id, TokenCount cells) {
  Slot& slot = taken_slot(id);
  CHECK(cells <= layout_.cells_per_slot);
  if (cells <= slot.reserved) return true;
  const TokenCount more = cells - slot.reserved;
  if (layout_.unified && cells_reserved_ + more > layout_.cells) return false;
  slot.reserved = cells;
  cells_reserved_ += more;
  return true;
}

void KvLedger::use(SlotId id, TokenCount cells) {
  Slot& slot = taken_slot(id);
  slot.used += cells;
  cells_used_ += cells;
  CHECK(slot.used <= slot.reserved, "conservation: a sequence uses more cells than it has reserved");
}

void KvLedger::unuse(SlotId id) { unuse(id, taken_slot(id).used); }

void KvLedger::unuse(SlotId id, TokenCount cells) {
  Slot& slot = taken_slot(id);
  CHECK(cells <= slot.used);
  cells_used_ -= cells;
  slot.used -= cells;
}

void KvLedger::move(SlotId from, SlotId to) {
  Slot& source = taken_slot(from);
  Slot& target = slot(to);
  CHECK(target.state == State::free, "conservation: a sequence moves into a slot that is taken");
  target = source;
  source = Slot{};
}

void KvLedger::exchange(SlotId a, SlotId b) {
  CHECK(!is_free(a) && !is_free(b), "conservation: an exchange with a free slot");
  std::swap(slot(a), slot(b));
}

void KvLedger::release(SlotId id) {
  if (is_cached(id)) {
    --slots_cached_;
    cells_cached_ -= slot(id).used;
    slot(id) = Slot{};
    return;
  }
  Slot& slot = taken_slot(id);
  --slots_used_;
  cells_used_ -= slot.used;
  cells_reserved_ -= slot.reserved;
  slot = Slot{};
}

void KvLedger::cache(SlotId id) {
  CHECK(!layout_.unified, "conservation: in one pool others need the cells");
  Slot& slot = taken_slot(id);
  --slots_used_;
  cells_used_ -= slot.used;
  cells_reserved_ -= slot.reserved;
  ++slots_cached_;
  cells_cached_ += slot.used;
  slot = Slot{State::cached, 0, slot.used};
}

void KvLedger::take_cached(SlotId id, TokenCount cells, TokenCount used) {
  CHECK(is_cached(id) && used <= slot(id).used && used <= cells);
  release(id);
  CHECK(take(id, cells));
  use(id, used);
}

SlotId KvLedger::lowest_free_slot() const {
  for (std::int32_t i = 0; i < layout_.slots; ++i) {
    if (is_free(SlotId{i})) return SlotId{i};
  }
  CHECK(false, "there is no free slot");
  return SlotId{};
}

SlotId KvLedger::highest_free_slot() const {
  for (std::int32_t i = layout_.slots; i-- > 0;) {
    if (is_free(SlotId{i})) return SlotId{i};
  }
  CHECK(false, "there is no free slot");
  return SlotId{};
}

TokenCount KvLedger::cells_free() const {
  return layout_.unified ? layout_.cells - cells_reserved_ : layout_.cells_per_slot;
}

bool KvLedger::conserved() const {
  Slot sum;
  std::int32_t taken = 0;
  std::int32_t cached = 0;
  TokenCount cached_cells = 0;
  for (const Slot& slot : slots_) {
    if (slot.state == State::free && (slot.used != 0 || slot.reserved != 0)) return false;
    if (slot.state == State::cached) {
      if (slot.reserved != 0 || slot.used > layout_.cells_per_slot) return false;
      ++cached;
      cached_cells += slot.used;
      continue;
    }
    if (slot.used > slot.reserved || slot.reserved > layout_.cells_per_slot) return false;
    taken += slot.state == State::taken ? 1 : 0;
    sum.used += slot.used;
    sum.reserved += slot.reserved;
  }
  return taken == slots_used_ && sum.used == cells_used_ && sum.reserved == cells_reserved_ &&
         sum.reserved <= layout_.cells && cached == slots_cached_ && cached_cells == cells_cached_;
}

const KvLedger::Slot& KvLedger::slot(SlotId id) const {
  CHECK(id.value >= 0 && id.value < layout_.slots);
  return slots_[static_cast<std::size_t>(id.value)];
}

KvLedger::Slot& KvLedger::taken_slot(SlotId id) {
  Slot& taken = slot(id);
  CHECK(taken.state == State::taken, "conservation: a slot is used that was not taken");
  return taken;
}

}  // namespace chasqui
