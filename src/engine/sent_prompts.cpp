#include "engine/sent_prompts.h"

#include <algorithm>

namespace chasqui {

void SentPrompts::match(PrefixKey key, std::span<const Token> prompt, std::vector<TokenCount>& lengths) const {
  lengths.assign(shelves_.size(), 0);
  const auto most = prompt.size() - 1;  // the last token is computed in any case
  for (std::size_t worker = 0; worker < shelves_.size(); ++worker) {
    const auto tree = shelves_[worker].trees.find(key);
    if (tree == shelves_[worker].trees.end()) continue;
    const RadixTree::Match match = tree->second.match(prompt.first(most));
    lengths[worker] = limits_.cut_anywhere ? match.length : match.whole;
  }
}

void SentPrompts::add(PrefixKey key, std::span<const Token> prompt, std::size_t worker) {
  if (limits_.entries == 0 || prompt.size() > limits_.tokens) return;
  Shelf& shelf = shelves_[worker];
  RadixTree& tree = shelf.trees[key];
  const RadixTree::Match match = tree.match(prompt);
  const TokenCount usable = limits_.cut_anywhere ? match.length : match.whole;
  const EntryId used = limits_.cut_anywhere ? match.carrier : match.whole_entry;
  if (usable > 0) touch(shelf, used);
  if (usable == static_cast<TokenCount>(prompt.size())) return;

  const EntryId id{++last_id_};
  tree.insert(prompt, id);
  shelf.by_use.push_front({id, key, prompt.size()});
  shelf.places.emplace(id, shelf.by_use.begin());
  shelf.tokens += prompt.size();
  if (limits_.cut_anywhere) {
    while (const auto shorter = tree.entry_above(id)) erase(shelf, *shorter);
  }
  // The new entry stays: it fits by itself, and is the latest.
  while (shelf.places.size() > limits_.entries || shelf.tokens > limits_.tokens) erase(shelf, shelf.by_use.back().id);
}

void SentPrompts::touch(Shelf& shelf, EntryId id) {
  shelf.by_use.splice(shelf.by_use.begin(), shelf.by_use, shelf.places.at(id));
}

void SentPrompts::erase(Shelf& shelf, EntryId id) {
  const auto place = shelf.places.find(id);
  const Entry& entry = *place->second;
  const auto tree = shelf.trees.find(entry.key);
  tree->second.erase(id);
  if (tree->second.empty()) shelf.trees.erase(tree);
  shelf.tokens -= entry.tokens;
  shelf.by_use.erase(place->second);
  shelf.places.erase(place);
}

bool SentPrompts::consistent() const {
  return std::ranges::all_of(shelves_, [this](const Shelf& shelf) {
    std::size_t in_trees = 0, tokens = 0;
    for (const auto& [key, tree] : shelf.trees) {
      if (tree.empty() || !tree.consistent()) return false;
      in_trees += tree.size();
    }
    for (const Entry& entry : shelf.by_use) tokens += entry.tokens;
    return in_trees == shelf.places.size() && shelf.by_use.size() == shelf.places.size() && tokens == shelf.tokens &&
           shelf.places.size() <= limits_.entries && tokens <= limits_.tokens;
  });
}

}  // namespace chasqui
