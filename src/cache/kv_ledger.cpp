#include "cache/kv_ledger.h"

#include "base/error.h"

namespace chasqui {

KvLedger::KvLedger(const Layout& layout) : layout_(layout), slots_(static_cast<std::size_t>(layout.slots)) {
  CHECK(layout.slots > 0 && layout.cells_per_slot > 0);
  CHECK(layout.cells_per_slot <= layout.cells, "progress: the longest sequence must fit when it is alone");
  CHECK(layout.unified || layout.cells / layout.slots >= layout.cells_per_slot);
}

std::optional<SlotId> KvLedger::take(TokenCount cells) {
  CHECK(cells <= layout_.cells_per_slot);
  if (layout_.unified && cells_promised_ + cells > layout_.cells) return std::nullopt;
  for (std::int32_t i = 0; i < layout_.slots; ++i) {
    Slot& slot = slots_[static_cast<std::size_t>(i)];
    if (slot.taken) continue;
    slot = Slot{true, cells, 0};
    ++slots_used_;
    cells_promised_ += cells;
    return SlotId{i};
  }
  return std::nullopt;
}

void KvLedger::use(SlotId id, TokenCount cells) {
  Slot& slot = taken_slot(id);
  slot.used += cells;
  cells_used_ += cells;
  CHECK(slot.used <= slot.promised, "conservation: a sequence uses more cells than it was promised");
}

void KvLedger::release(SlotId id) {
  Slot& slot = taken_slot(id);
  --slots_used_;
  cells_used_ -= slot.used;
  cells_promised_ -= slot.promised;
  slot = Slot{};
}

bool KvLedger::conserved() const {
  std::int32_t taken = 0;
  TokenCount used = 0;
  TokenCount promised = 0;
  for (const Slot& slot : slots_) {
    if (!slot.taken && (slot.used != 0 || slot.promised != 0)) return false;
    if (slot.used > slot.promised) return false;
    taken += slot.taken ? 1 : 0;
    used += slot.used;
    promised += slot.promised;
  }
  return taken == slots_used_ && used == cells_used_ && promised == cells_promised_ && promised <= layout_.cells;
}

KvLedger::Slot& KvLedger::taken_slot(SlotId id) {
  CHECK(id.value >= 0 && id.value < layout_.slots);
  Slot& slot = slots_[static_cast<std::size_t>(id.value)];
  CHECK(slot.taken, "conservation: a slot is used that nobody took");
  return slot;
}

}  // namespace chasqui
