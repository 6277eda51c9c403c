#include "cache/radix_tree.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/error.h"

namespace chasqui {
namespace {

// Prompts share thousands of tokens: memcmp compares several at once, the loop finds the place.
std::size_t common_length(std::span<const Token> a, std::span<const Token> b) {
  constexpr std::size_t kStride = 64;
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same + kStride <= most && std::memcmp(&a[same], &b[same], kStride * sizeof(Token)) == 0) same += kStride;
  while (same < most && a[same] == b[same]) ++same;
  return same;
}

template <class Children>
auto lower_bound(Children& children, Token first) {
  return std::lower_bound(children.begin(), children.end(), first,
                          [](const auto& child, Token token) { return child.first < token; });
}

}  // namespace

RadixTree::RadixTree(std::pmr::memory_resource* upstream)
    : memory_(upstream), nodes_(&memory_), free_(&memory_), places_(&memory_) {
  nodes_.emplace_back(&memory_);
}

void RadixTree::insert(std::span<const Token> tokens, EntryId id) {
  CHECK(!tokens.empty());
  const Index place = place_for(tokens);
  CHECK(places_.emplace(id, place).second, "an entry is inserted twice");
  node(place).entries.push_back(id);
  const TokenCount length = node(place).depth;
  // Where something as short is known already, it is known all the way up.
  for (Index i = place; i != kNone && length < node(i).carrier_length; i = node(i).parent) {
    node(i).carrier = id;
    node(i).carrier_length = length;
  }
}

void RadixTree::erase(EntryId id) {
  const auto found = places_.find(id);
  CHECK(found != places_.end(), "an entry is erased that is not here");
  Index place = found->second;
  places_.erase(found);
  std::erase(node(place).entries, id);

  if (node(place).entries.empty() && node(place).children.empty()) {
    const Index parent = node(place).parent;
    unlink(parent, node(place).label.front());
    free_node(place);
    place = parent;
  }
  replace_carrier(place, id);
  if (place != kRoot && node(place).entries.empty() && node(place).children.size() == 1) merge_with_only_child(place);
}

RadixTree::Match RadixTree::match(std::span<const Token> query) const {
  Match match;
  Index at = kRoot;
  std::size_t length = 0;
  match.ways = node(kRoot).children.size();
  while (length < query.size()) {
    const Index child = child_of(at, query[length]);
    if (child == kNone) break;
    const Node& below = node(child);
    const std::size_t common = common_length(below.label, query.subspan(length));
    length += common;
    at = child;
    const bool inside = common < below.label.size();
    match.ways = inside ? 1 : below.children.size();
    if (inside) break;
    if (!below.entries.empty()) {
      match.whole = below.depth;
      match.whole_entry = below.entries.front();
    }
  }
  match.length = static_cast<TokenCount>(length);
  match.carrier = node(at).carrier;
  return match;
}

std::optional<EntryId> RadixTree::entry_above(EntryId id) const {
  for (Index i = node(places_.at(id)).parent; i != kNone; i = node(i).parent) {
    if (!node(i).entries.empty()) return node(i).entries.front();
  }
  return std::nullopt;
}

void RadixTree::copy_tokens(EntryId id, std::vector<Token>& out) const {
  const Index place = places_.at(id);
  out.resize(static_cast<std::size_t>(node(place).depth));
  auto end = out.end();
  for (Index i = place; i != kRoot; i = node(i).parent) {
    end = std::copy_backward(node(i).label.begin(), node(i).label.end(), end);
  }
}

RadixTree::Index RadixTree::child_of(Index parent, Token first) const {
  const auto& children = node(parent).children;
  const auto found = lower_bound(children, first);
  return found != children.end() && found->first == first ? found->node : kNone;
}

void RadixTree::link(Index parent, Token first, Index child) {
  auto& children = node(parent).children;
  const auto at = lower_bound(children, first);
  if (at != children.end() && at->first == first) {
    at->node = child;
  } else {
    children.insert(at, Child{first, child});
  }
  node(child).parent = parent;
}

void RadixTree::unlink(Index parent, Token first) {
  auto& children = node(parent).children;
  children.erase(lower_bound(children, first));
  if (children.size() < children.capacity() / 4) children.shrink_to_fit();
}

RadixTree::Index RadixTree::make_node() {
  if (!free_.empty()) {
    const Index index = free_.back();
    free_.pop_back();
    return index;
  }
  nodes_.emplace_back(&memory_);
  return static_cast<Index>(nodes_.size() - 1);
}

void RadixTree::free_node(Index index) {
  node(index) = Node(&memory_);
  free_.push_back(index);
}

RadixTree::Index RadixTree::place_for(std::span<const Token> tokens) {
  Index at = kRoot;
  while (!tokens.empty()) {
    Index child = child_of(at, tokens.front());
    if (child == kNone) {
      child = make_node();
      node(child).label.assign(tokens.begin(), tokens.end());
      node(child).depth = node(at).depth + static_cast<TokenCount>(tokens.size());
      link(at, tokens.front(), child);
      return child;
    }
    const std::size_t common = common_length(node(child).label, tokens);
    if (common < node(child).label.size()) child = split(child, static_cast<TokenCount>(common));
    tokens = tokens.subspan(common);
    at = child;
  }
  return at;
}

RadixTree::Index RadixTree::split(Index lower, TokenCount length) {
  const Index upper = make_node();
  Node& above = node(upper);
  Node& below = node(lower);
  const auto cut = below.label.begin() + length;
  above.label.assign(below.label.begin(), cut);
  above.depth = below.depth - static_cast<TokenCount>(below.label.end() - cut);
  above.carrier = below.carrier;
  above.carrier_length = below.carrier_length;
  below.label.erase(below.label.begin(), cut);
  below.label.shrink_to_fit();
  link(below.parent, above.label.front(), upper);
  link(upper, below.label.front(), lower);
  return upper;
}

void RadixTree::merge_with_only_child(Index upper) {
  const Index lower = node(upper).children.front().node;
  Node& above = node(upper);
  Node& below = node(lower);
  above.label.reserve(above.label.size() + below.label.size());
  above.label.insert(above.label.end(), below.label.begin(), below.label.end());
  below.label = std::move(above.label);
  link(above.parent, below.label.front(), lower);
  free_node(upper);
}

void RadixTree::replace_carrier(Index from, EntryId gone) {
  // A node's carrier is also the carrier of all nodes between the two; so the first that has another ends the walk.
  for (Index i = from; i != kNone && node(i).carrier_length != kEmpty && node(i).carrier == gone; i = node(i).parent) {
    Node& at = node(i);
    const TokenCount least = at.carrier_length;
    at.carrier_length = kEmpty;
    if (!at.entries.empty()) {
      at.carrier = at.entries.front();
      at.carrier_length = at.depth;
      continue;
    }
    for (const Child& child : at.children) {
      const Node& below = node(child.node);
      if (below.carrier_length >= at.carrier_length) continue;
      at.carrier = below.carrier;
      at.carrier_length = below.carrier_length;
      if (at.carrier_length == least) break;  // nothing is shorter than what just went
    }
  }
}

bool RadixTree::consistent() const {
  std::size_t entries = 0;
  std::size_t linked = 1;
  for (Index i = 0; i < nodes_.size(); ++i) {
    if (!consistent_node(i)) return false;
    entries += node(i).entries.size();
    linked += node(i).children.size();
  }
  for (const auto& [id, place] : places_) {
    const auto& there = node(place).entries;
    if (std::find(there.begin(), there.end(), id) == there.end()) return false;
  }
  return entries == places_.size() && linked + free_.size() == nodes_.size();
}

bool RadixTree::consistent_node(Index index) const {
  const Node& here = node(index);
  const bool in_use = index == kRoot || here.parent != kNone;
  if (!in_use) return here.entries.empty() && here.children.empty() && here.label.capacity() == 0;
  if (index != kRoot) {
    if (here.entries.empty() && here.children.size() < 2) return false;
    if (here.label.empty() || here.label.capacity() != here.label.size()) return false;
    if (here.depth != node(here.parent).depth + static_cast<TokenCount>(here.label.size())) return false;
    if (child_of(here.parent, here.label.front()) != index) return false;
  }
  TokenCount least = here.entries.empty() ? kEmpty : here.depth;
  for (std::size_t i = 0; i < here.children.size(); ++i) {
    const Child& child = here.children[i];
    if (i > 0 && here.children[i - 1].first >= child.first) return false;
    if (node(child.node).parent != index || node(child.node).label.front() != child.first) return false;
    least = std::min(least, node(child.node).carrier_length);
  }
  if (least != here.carrier_length) return false;
  return least == kEmpty || (places_.contains(here.carrier) && node(places_.at(here.carrier)).depth == least);
}

}  // namespace chasqui
