// Which prompts were sent to which worker, and so what the workers' prefix caches probably hold: known at once, without
// asking a worker that computes. An approximation: the cache of a worker has the answers too, forgets by other rules,
// and may have kept nothing. Being wrong costs the computing of a prefix, never an answer. Owned by Placement; pure.
// Invariants, for each worker: entries ≤ limits.entries, and all their tokens ≤ limits.tokens.
//
// A prompt that goes on where an older one ends takes its place, as the turns of a conversation do. The prompts that
// were not continued for the longest time are forgotten first.
#pragma once

#include <cstddef>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/prefix_cache.h"
#include "cache/radix_tree.h"
#include "core/types.h"

namespace chasqui {

class SentPrompts {
 public:
  struct Limits {
    std::size_t entries = 4096;  // 0: nothing is remembered
    std::size_t tokens = std::size_t{4} << 20;
    bool cut_anywhere = true;  // false: a prompt helps only those that go on from its end
  };

  SentPrompts(std::size_t workers, const Limits& limits) : limits_(limits), shelves_(workers) {}

  // How many tokens of the prompt, from the first on and at most all but the last, each worker was sent before.
  void match(PrefixKey key, std::span<const Token> prompt, std::vector<TokenCount>& lengths) const;
  void add(PrefixKey key, std::span<const Token> prompt, std::size_t worker);

  std::size_t entries(std::size_t worker) const { return shelves_[worker].places.size(); }
  // Of its entries together; memory is about four bytes for each, less where entries begin alike.
  std::size_t tokens(std::size_t worker) const { return shelves_[worker].tokens; }
  // Recounts everything and compares.
  bool consistent() const;

 private:
  struct Entry {
    EntryId id;
    PrefixKey key;
    std::size_t tokens = 0;
  };
  // What one worker was sent.
  struct Shelf {
    std::unordered_map<PrefixKey, RadixTree> trees;  // none is empty
    std::list<Entry> by_use;                         // the latest first
    std::unordered_map<EntryId, std::list<Entry>::iterator> places;
    std::size_t tokens = 0;
  };

  static void touch(Shelf& shelf, EntryId id);
  static void erase(Shelf& shelf, EntryId id);

  const Limits limits_;
  std::vector<Shelf> shelves_;
  std::uint64_t last_id_ = 0;
};

}  // namespace chasqui
