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
  slots_[static_cast<std::size_t>(id.value)] = Slot{true, cells, 0};
  ++slots_used_;
  cells_reserved_ += cells;
  return id;
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

void KvLedger::unuse(SlotId id) {
  Slot& slot = taken_slot(id);
  cells_used_ -= slot.used;
  slot.used = 0;
}

void KvLedger::move(SlotId from, SlotId to) {
  Slot& source = taken_slot(from);
  CHECK(to.value >= 0 && to.value < layout_.slots);
  Slot& target = slots_[static_cast<std::size_t>(to.value)];
  CHECK(!target.taken, "conservation: a sequence moves into a slot that is taken");
  target = source;
  source = Slot{};
}

void KvLedger::exchange(SlotId a, SlotId b) { std::swap(taken_slot(a), taken_slot(b)); }

void KvLedger::release(SlotId id) {
  Slot& slot = taken_slot(id);
  --slots_used_;
  cells_used_ -= slot.used;
  cells_reserved_ -= slot.reserved;
  slot = Slot{};
}

SlotId KvLedger::lowest_free_slot() const {
  for (std::int32_t i = 0; i < layout_.slots; ++i) {
    if (!slots_[static_cast<std::size_t>(i)].taken) return SlotId{i};
  }
  CHECK(false, "there is no free slot");
  return SlotId{};
}

SlotId KvLedger::highest_free_slot() const {
  for (std::int32_t i = layout_.slots; i-- > 0;) {
    if (!slots_[static_cast<std::size_t>(i)].taken) return SlotId{i};
  }
  CHECK(false, "there is no free slot");
  return SlotId{};
}

TokenCount KvLedger::cells_free() const {
  return layout_.unified ? layout_.cells - cells_reserved_ : layout_.cells_per_slot;
}

bool KvLedger::conserved() const {
  std::int32_t taken = 0;
  TokenCount used = 0;
  TokenCount reserved = 0;
  for (const Slot& slot : slots_) {
    if (!slot.taken && (slot.used != 0 || slot.reserved != 0)) return false;
    if (slot.used > slot.reserved || slot.reserved > layout_.cells_per_slot) return false;
    taken += slot.taken ? 1 : 0;
    used += slot.used;
    reserved += slot.reserved;
  }
  return taken == slots_used_ && used == cells_used_ && reserved == cells_reserved_ && reserved <= layout_.cells;
}

KvLedger::Slot& KvLedger::taken_slot(SlotId id) {
  CHECK(id.value >= 0 && id.value < layout_.slots);
  Slot& slot = slots_[static_cast<std::size_t>(id.value)];
  CHECK(slot.taken, "conservation: a slot is used that was not taken");
  return slot;
}

}  // namespace chasqui
