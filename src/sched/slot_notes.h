// What the latest sequence of each tenant in each slot was, by its tokens, for clients that save slots by their numbers
// as with llama-server: what was computed of them is in the prefix cache. Owned by Reuse; worker thread; pure. Bounded:
// kNotesMax notes, each of at most a slot's tokens; the oldest goes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "cache/prefix_cache.h"
#include "core/types.h"

namespace chasqui {

struct SlotNote {
  std::uint32_t tenant = 0;
  std::int32_t slot = 0;
  std::uint64_t order = 0;  // the number of the request: later ones have larger ones, in all workers
  PrefixKey key;
  std::vector<Token> tokens;
};

class SlotNotes {
 public:
  static constexpr std::size_t kNotesMax = 256;

  // Takes the place of what this tenant had in this slot.
  void add(SlotNote note) {
    std::erase_if(notes_, [&](const SlotNote& old) { return old.tenant == note.tenant && old.slot == note.slot; });
    notes_.push_back(std::move(note));
    if (notes_.size() > kNotesMax) notes_.pop_front();
  }

  // Null: there is none. Valid until the next change.
  const SlotNote* find(std::uint32_t tenant, std::int32_t slot) const {
    const auto found =
        std::ranges::find_if(notes_, [&](const SlotNote& note) { return note.tenant == tenant && note.slot == slot; });
    return found != notes_.end() ? &*found : nullptr;
  }

  void forget(std::uint32_t tenant) {
    std::erase_if(notes_, [tenant](const SlotNote& note) { return note.tenant == tenant; });
  }

  std::size_t size() const { return notes_.size(); }

 private:
  std::deque<SlotNote> notes_;  // oldest first
};

// What a slot's latest sequence has left in the cache: all of one copy, which may go on behind its tokens.
struct SlotCopy {
  std::uint64_t order = 0;
  std::uint64_t adapters = 0;  // AdapterSet::id
  std::vector<Token> tokens;
  KvSnapshotPtr kv;  // null: nothing
};

}  // namespace chasqui
