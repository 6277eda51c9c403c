// What sequences that have left hold in their slots, until a slot is needed: nothing is copied that no request asks
// for. Found by its tokens like a snapshot, and of the same keys. Owned by Reuse; worker thread only; pure. At most one
// for each slot, so it is searched one by one. Only where the model copies out ranges of positions, with a stream of
// cells for each slot.
//
//   taken by a sequence that goes on with it     in place, nothing is copied
//   copied from, within the device               it stays; pinned until the copy is complete
//   copied out, in pieces (SaveQueue)            it stays, and can be given away at once from then on
//   given away                                   the slot is free
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cache/holding_log.h"
#include "cache/prefix_cache.h"
#include "core/types.h"

namespace chasqui {

class CachedSlots {
 public:
  struct Kept {
    RequestId request;
    PrefixKey key;
    SlotId slot;
    std::vector<Token> tokens;
    TokenCount prompt = 0;  // of them; the others were generated
    TimePoint used{};
    bool returns = false;  // its client is expected back with more
    bool safe = false;     // the prefix cache has what is worth keeping of it, or no place for it
    bool no_room = false;  // … as everything in it was being written to disk: worth another try later
    bool copying = false;  // it is being copied out
    int readers = 0;       // sequences that are being copied from it
    std::uint64_t holding = 0;  // of HoldingLog

    TokenCount length() const { return static_cast<TokenCount>(tokens.size()); }
    // It is where it is, and stays there.
    bool pinned() const { return copying || readers > 0; }
  };

  struct Stats {
    std::uint64_t taken = 0;       // by sequences that went on in the same slot
    std::uint64_t copied = 0;      // into another slot, for a sequence that begins alike
    std::uint64_t copied_out = 0;  // into the prefix cache
    std::uint64_t dropped = 0;     // given away for another sequence
  };

  // `holdings` is told what prompts can begin with, and outlives this; null: nothing is.
  explicit CachedSlots(HoldingLog* holdings = nullptr) : holdings_(holdings) {}

  void add(Kept kept);
  bool empty() const { return kept_.empty(); }
  std::size_t size() const { return kept_.size(); }
  const std::vector<Kept>& all() const { return kept_; }
  // Null: that slot is not cached. Valid until the next change.
  Kept* find(SlotId slot);
  const Kept* find(SlotId slot) const { return const_cast<CachedSlots*>(this)->find(slot); }

  // The one that serves most of the tokens, and how much; of equals the one that is left with least. Null: none.
  std::pair<const Kept*, TokenCount> match(PrefixKey key, std::span<const Token> tokens, TokenCount most) const;
  // The least valuable that can be given away at once, and is not in `except`; null: there is none.
  const Kept* least_valuable(TimePoint now, SlotId except = SlotId{}) const;
  // The least valuable that is not safe yet, and is not being copied out; null: there is none.
  const Kept* least_unsafe(TimePoint now) const;
  // That can be given away at once.
  std::size_t ready() const;

  // What had no room in the prefix cache is not safe any more.
  void try_again();
  void remove(SlotId slot);
  void moved(SlotId from, SlotId to) { find(from)->slot = to; }
  // Moves the slots of a tenant to the end of `slots`, but for those that are being copied from: these are found no
  // more. None of them is being copied out from now on. Returns how many were not safe.
  std::size_t forget(std::uint32_t tenant, std::vector<SlotId>& slots);

  Stats stats;

 private:
  void end_holding(Kept& kept);

  HoldingLog* holdings_;
  std::vector<Kept> kept_;
};

}  // namespace chasqui
