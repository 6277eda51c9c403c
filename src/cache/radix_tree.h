// Finds the longest common prefix of a prompt with anything that was inserted: a trie over tokens whose nodes hold
// whole runs of them. Owned by the PrefixCache; worker thread only. A lookup is one pass over the query, allocates
// nothing and changes nothing. Invariants: a node other than the root has an entry, or at least two children (else it
// is merged with its child), and knows the shortest entry at or below it.
//
// Why the shortest: every entry below the end of a match has all of the match, and the shortest is copied soonest. It
// also makes all who share a prefix use the same entry, which so earns its place while the others may go.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory_resource>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/counted_memory.h"
#include "core/types.h"

namespace chasqui {

struct EntryId {
  std::uint64_t value = 0;
  auto operator<=>(const EntryId&) const = default;
};

}  // namespace chasqui

template <>
struct std::hash<chasqui::EntryId> {
  std::size_t operator()(chasqui::EntryId id) const noexcept {
    return static_cast<std::size_t>(id.value * 0x9E3779B97F4A7C15ull);
  }
};

namespace chasqui {

class RadixTree {
 public:
  struct Match {
    TokenCount length = 0;  // of the longest common prefix with any entry
    EntryId carrier;        // one of the shortest entries that have all of it; means nothing when length is 0
    std::size_t ways = 0;   // how many different tokens follow it in the tree
    TokenCount whole = 0;   // of the longest entry that is itself a prefix of the query
    EntryId whole_entry;    // the first inserted of that length; means nothing when whole is 0
  };

  explicit RadixTree(std::pmr::memory_resource* upstream = std::pmr::new_delete_resource());
  RadixTree(const RadixTree&) = delete;
  RadixTree& operator=(const RadixTree&) = delete;

  // Several entries may have the same tokens. REQUIRES: tokens are not empty, the id is not here yet
  void insert(std::span<const Token> tokens, EntryId id);
  // REQUIRES: contains(id)
  void erase(EntryId id);

  Match match(std::span<const Token> query) const;
  // The longest entry that is a proper prefix of this one. REQUIRES: contains(id)
  std::optional<EntryId> entry_above(EntryId id) const;
  // How many different tokens follow this entry in the tree. REQUIRES: contains(id)
  std::size_t ways_below(EntryId id) const { return node(places_.at(id)).children.size(); }

  // In place of what `out` held. REQUIRES: contains(id)
  void copy_tokens(EntryId id, std::vector<Token>& out) const;

  bool contains(EntryId id) const { return places_.contains(id); }
  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  // Without the object itself. Nodes are used again, but only go back to the system with the tree.
  std::size_t memory_bytes() const { return memory_.bytes(); }

  // Walks through everything and checks the invariants.
  bool consistent() const;

 private:
  using Index = std::uint32_t;  // of a node; stays the same while nodes above and below split and merge
  static constexpr Index kRoot = 0;
  static constexpr Index kNone = UINT32_MAX;
  static constexpr TokenCount kEmpty = INT32_MAX;  // the length of an entry that is not there

  struct Child {
    Token first = 0;
    Index node = kNone;
  };

  struct Node {
    explicit Node(std::pmr::memory_resource* memory) : label(memory), children(memory), entries(memory) {}

    std::pmr::vector<Token> label;      // from the parent to here; exactly allocated
    std::pmr::vector<Child> children;   // sorted by first token
    std::pmr::vector<EntryId> entries;  // that end here, in the order in which they came
    Index parent = kNone;
    TokenCount depth = 0;  // tokens from the root to the end of the label
    EntryId carrier;       // one of the shortest entries at or below
    TokenCount carrier_length = kEmpty;
  };

  Node& node(Index index) { return nodes_[index]; }
  const Node& node(Index index) const { return nodes_[index]; }
  Index child_of(Index parent, Token first) const;
  void link(Index parent, Token first, Index child);
  void unlink(Index parent, Token first);

  Index make_node();
  void free_node(Index index);
  // The node where these tokens end, made when there is none.
  Index place_for(std::span<const Token> tokens);
  // Cuts the label of a node after `length` tokens; the node keeps the rest, the new node above it is returned.
  Index split(Index lower, TokenCount length);
  void merge_with_only_child(Index upper);
  // Finds another carrier for every node at or above `from` that has this one.
  void replace_carrier(Index from, EntryId gone);
  bool consistent_node(Index index) const;

  CountedMemory memory_;
  std::pmr::vector<Node> nodes_;
  std::pmr::vector<Index> free_;
  std::pmr::unordered_map<EntryId, Index> places_;
};

}  // namespace chasqui
