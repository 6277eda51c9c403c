// Knows every slot and every cell of one context, so that llama_decode never has to say "no room": a row is planned
// only when its cell is reserved. Owned by the Scheduler; worker thread only.
// Invariant (conservation): free + taken + cached slots = total, and used ≤ reserved for each slot.
//
// A cached slot holds what a sequence has left in it. None has reserved cells of it, and it is not free until it is
// released; only with a stream for each slot, where its cells could serve no other slot.
//
// Two layouts: a stream of cells_per_slot cells for each slot, or one unified pool that all slots share. In streams a
// reservation never fails; in the pool it does when the cells are all reserved, and a sequence has to be preempted.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/types.h"

namespace chasqui {

class KvLedger {
 public:
  struct Layout {
    std::int32_t slots = 0;
    TokenCount cells = 0;
    TokenCount cells_per_slot = 0;
    bool unified = false;
  };

  explicit KvLedger(const Layout& layout);

  // Takes the lowest free slot and reserves `cells` cells for it. None when there is no slot or not enough cells.
  // REQUIRES: cells ≤ cells_per_slot
  std::optional<SlotId> take(TokenCount cells);
  // The same with this slot. REQUIRES: it is free
  bool take(SlotId slot, TokenCount cells);
  // Makes the reservation of a taken slot at least `cells`; false, and nothing changes, when there are not enough.
  // REQUIRES: cells ≤ cells_per_slot
  bool reserve(SlotId slot, TokenCount cells);
  // `cells` more positions of the slot are in the model. REQUIRES: they are reserved.
  void use(SlotId slot, TokenCount cells);
  // What was used of the slot is not in the model any more; it stays reserved.
  void unuse(SlotId slot);
  // … or so much of it. REQUIRES: as much is used
  void unuse(SlotId slot, TokenCount cells);
  // What `from` has is now `to`'s. REQUIRES: `from` is taken, `to` is free.
  void move(SlotId from, SlotId to);
  // What each of them has is the other's now. REQUIRES: neither is free
  void exchange(SlotId a, SlotId b);
  // Everything of the slot is free again. REQUIRES: it is not free
  void release(SlotId slot);
  // Its sequence has left, and what was used of it stays. REQUIRES: it is taken, and not in one pool
  void cache(SlotId slot);
  // A sequence takes it with the first `used` of its positions. REQUIRES: it is cached; used ≤ cells ≤ cells_per_slot
  void take_cached(SlotId slot, TokenCount cells, TokenCount used);

  bool has_free_slot() const { return slots_used_ + slots_cached_ < layout_.slots; }
  bool is_free(SlotId id) const { return slot(id).state == State::free; }
  bool is_cached(SlotId id) const { return slot(id).state == State::cached; }
  // REQUIRES: has_free_slot()
  SlotId lowest_free_slot() const;
  SlotId highest_free_slot() const;
  // Cells that a new sequence could reserve at most.
  TokenCount cells_free() const;
  TokenCount reserved(SlotId id) const { return slot(id).reserved; }

  std::int32_t slots_total() const { return layout_.slots; }
  std::int32_t slots_used() const { return slots_used_; }
  std::int32_t slots_cached() const { return slots_cached_; }
  TokenCount cells_cached() const { return cells_cached_; }
  TokenCount cells_total() const { return layout_.cells; }
  TokenCount cells_used() const { return cells_used_; }
  TokenCount cells_reserved() const { return cells_reserved_; }
  bool unified() const { return layout_.unified; }

  // Recounts from the slots and compares: conservation.
  bool conserved() const;

 private:
  enum class State : std::uint8_t { free, taken, cached };
  struct Slot {
    State state = State::free;
    TokenCount reserved = 0;
    TokenCount used = 0;
  };

  const Slot& slot(SlotId id) const;
  Slot& slot(SlotId id) { return const_cast<Slot&>(std::as_const(*this).slot(id)); }
  Slot& taken_slot(SlotId slot);

  const Layout layout_;
  std::vector<Slot> slots_;
  std::int32_t slots_used_ = 0;
  std::int32_t slots_cached_ = 0;
  TokenCount cells_cached_ = 0;
  TokenCount cells_used_ = 0;
  TokenCount cells_reserved_ = 0;
};

}  // namespace chasqui
