// Knows every slot and every cell of one context, so that llama_decode never has to say "no room". Cells are promised
// when a slot is taken (a sequence then always can finish) and counted as used as positions are computed.
// Owned by the Scheduler; worker thread only. Invariant (conservation): free + promised = total, used ≤ promised.
//
// Two layouts: a stream of cells_per_slot cells for each slot, or one unified pool that all slots share.
#pragma once

#include <optional>
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

  // Takes the lowest free slot, which keeps the active ids dense, and promises it `cells` cells. None when there is
  // no slot or not enough cells. REQUIRES: cells ≤ cells_per_slot
  std::optional<SlotId> take(TokenCount cells);
  // `cells` more positions of the slot are in the model. REQUIRES: it was promised them.
  void use(SlotId slot, TokenCount cells);
  // Everything of the slot is free again.
  void release(SlotId slot);

  std::int32_t slots_total() const { return layout_.slots; }
  std::int32_t slots_used() const { return slots_used_; }
  TokenCount cells_total() const { return layout_.cells; }
  TokenCount cells_used() const { return cells_used_; }
  TokenCount cells_promised() const { return cells_promised_; }

  // Recounts from the slots and compares: conservation.
  bool conserved() const;

 private:
  struct Slot {
    bool taken = false;
    TokenCount promised = 0;
    TokenCount used = 0;
  };

  Slot& taken_slot(SlotId slot);

  const Layout layout_;
  std::vector<Slot> slots_;
  std::int32_t slots_used_ = 0;
  TokenCount cells_used_ = 0;
  TokenCount cells_promised_ = 0;
};

}  // namespace chasqui
