#include "cache/prefix_cache.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "cache/holding_log.h"

namespace chasqui {
namespace {

// Of entries that are next to leave, so that a step does not walk through all of a cache of short ones.
constexpr int kLeavingLookedAt = 64;

}  // namespace

PrefixCache::PrefixCache(const Limits& limits, std::pmr::memory_resource* upstream)
    : limits_(limits),
      memory_(upstream),
      shelves_(&memory_),
      entries_(&memory_),
      ranks_(&memory_),
      pending_(&memory_),
      blocks_(&memory_),
      unseen_(&memory_) {}

PrefixCache::Match PrefixCache::match(PrefixKey key, std::span<const Token> tokens, TokenCount most) const {
  const auto shelf = shelves_.find(key);
  if (shelf == shelves_.end()) return {};
  const auto [length, id] = usable(shelf->second.kept, tokens, most);
  if (length == 0) return {};
  return {length, id, entries_.at(id).snapshot};
}

TokenCount PrefixCache::known(PrefixKey key, std::span<const Token> tokens, TokenCount most) const {
  const auto shelf = shelves_.find(key);
  if (shelf == shelves_.end()) return 0;
  const auto limit = static_cast<std::size_t>(std::max(most, 0));
  return shelf->second.kept.match(tokens.first(std::min(tokens.size(), limit))).length;
}

void PrefixCache::touch(const Match& match, TimePoint now) {
  if (match.length == 0) {
    ++counts_.misses;
    return;
  }
  ++counts_.hits;
  counts_.tokens_matched += static_cast<std::uint64_t>(match.length);
  const auto found = entries_.find(match.entry);
  if (found == entries_.end()) return;
  ++found->second.hits;
  rank_again(found->second, now);
}

PrefixCache::Insertion PrefixCache::insert(PrefixKey key, std::span<const Token> tokens, KvSnapshotPtr snapshot,
                                           Duration cost, TimePoint now) {
  CHECK(snapshot && !tokens.empty() && std::cmp_equal(snapshot->tokens(), tokens.size()));
  CHECK(cost >= Duration::zero());
  const auto length = static_cast<TokenCount>(tokens.size());
  const auto shelf = shelves_.find(key);
  const RadixTree::Match known = shelf == shelves_.end() ? RadixTree::Match{} : shelf->second.kept.match(tokens);
  const bool same = known.whole == length;

  if (!same && limits_.cut_anywhere && known.length == length && known.ways == 1) {
    rank_again(entries_.at(known.carrier), now);
    return Insertion::covered;
  }
  const Entry* replaced = same ? &entries_.at(known.whole_entry) : nullptr;
  const bool again = replaced && replaced->snapshot == snapshot;
  if (!again && !same && known.length > 0) snapshot = sharing(std::move(snapshot), known);
  if (!again && !room_for(blocks_.more_with(*snapshot), snapshot.get(), replaced)) {
    ++counts_.refused;
    return Insertion::refused;
  }
  ++counts_.insertions;
  if (same) {
    replace(known.whole_entry, std::move(snapshot), cost, now);
    make_room(known.whole_entry);
    return Insertion::stored;
  }

  const EntryId id{++last_id_};
  RadixTree& tree = shelves_.try_emplace(key, &memory_).first->second.kept;
  tree.insert(tokens, id);
  blocks_.hold(*snapshot);
  Entry& entry = entries_.emplace(id, Entry{key, std::move(snapshot), cost, 1, Rank{0, now, id}}).first->second;
  if (limits_.cut_anywhere) absorb_redundant(tree, id);
  entry.rank.priority = priority_of(entry);
  ranks_.insert(entry.rank);
  others_leave_ = true;
  if (limits_.holdings != nullptr) entry.holding = limits_.holdings->hold(key, tokens);
  if (limits_.hand_over) unseen_.insert(id);
  make_room(id);
  return Insertion::stored;
}

std::size_t PrefixCache::erase_tenant(std::uint32_t tenant) {
  const std::size_t before = entries_.size();
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto& [id, entry] = *it++;
    if (entry.key.tenant == tenant) remove(id);
  }
  return before - entries_.size();
}

std::optional<PrefixCache::Kept> PrefixCache::give_up(const KvSnapshot& snapshot) {
  const auto found =
      std::ranges::find_if(entries_, [&snapshot](const auto& each) { return each.second.snapshot.get() == &snapshot; });
  if (found == entries_.end()) return std::nullopt;
  Kept gone = kept(found->first);
  remove(found->first);
  return gone;
}

void PrefixCache::announce(PrefixKey key, std::span<const Token> tokens, RequestId request) {
  CHECK(pending_.emplace(request, Announced{key}).second, "a request announces twice");
  shelves_.try_emplace(key, &memory_).first->second.pending.insert(tokens, EntryId{request.value});
}

void PrefixCache::computed(RequestId request, TokenCount length) {
  if (limits_.holdings == nullptr) return;
  const auto found = pending_.find(request);
  if (found == pending_.end()) return;
  auto& [key, holding] = found->second;
  std::vector<Token> tokens;
  shelves_.at(key).pending.copy_tokens(EntryId{request.value}, tokens);
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(length)));
  limits_.holdings->drop(holding);
  holding = limits_.holdings->hold(key, tokens);
}

void PrefixCache::withdraw(RequestId request) {
  const auto found = pending_.find(request);
  if (found == pending_.end()) return;
  if (limits_.holdings != nullptr) limits_.holdings->drop(found->second.holding);
  const auto shelf = shelves_.find(found->second.key);
  shelf->second.pending.erase(EntryId{request.value});
  drop_if_empty(shelf);
  pending_.erase(found);
}

PrefixCache::PendingMatch PrefixCache::match_pending(PrefixKey key, std::span<const Token> tokens,
                                                     TokenCount most) const {
  const auto shelf = shelves_.find(key);
  if (shelf == shelves_.end()) return {};
  const auto [length, id] = usable(shelf->second.pending, tokens, most);
  return {length, RequestId{id.value}};
}

std::pair<TokenCount, EntryId> PrefixCache::usable(const RadixTree& tree, std::span<const Token> tokens,
                                                   TokenCount most) const {
  const auto limit = static_cast<std::size_t>(std::max(most, 0));
  const RadixTree::Match found = tree.match(tokens.first(std::min(tokens.size(), limit)));
  return limits_.cut_anywhere ? std::pair{found.length, found.carrier} : std::pair{found.whole, found.whole_entry};
}

double PrefixCache::priority_of(const Entry& entry) const {
  const double bytes = static_cast<double>(std::max<std::size_t>(entry.snapshot->resident_bytes(), 1));
  const double hits = static_cast<double>(std::min(entry.hits, kHitsMax));
  return clock_ + hits * static_cast<double>(entry.cost.count()) / bytes;
}

void PrefixCache::rank_again(Entry& entry, TimePoint now) {
  auto rank = ranks_.extract(entry.rank);
  entry.rank.priority = priority_of(entry);
  entry.rank.used = now;
  rank.value() = entry.rank;
  ranks_.insert(std::move(rank));
  others_leave_ = true;
}

KvSnapshotPtr PrefixCache::sharing(KvSnapshotPtr snapshot, const RadixTree::Match& known) const {
  const KvSnapshot& there = *entries_.at(known.carrier).snapshot;
  const TokenCount block = snapshot->block_tokens();
  if (block == 0 || there.block_tokens() != block || known.length < block) return snapshot;
  const auto shared = static_cast<std::size_t>(known.length / block);
  KvSnapshot::Blocks blocks = snapshot->blocks();
  for (std::size_t i = 0; i < shared; ++i) {
    if (there.blocks()[i]->size() != blocks[i]->size()) return snapshot;  // a file of something else
    blocks[i] = there.blocks()[i];
  }
  return std::make_shared<const KvSnapshot>(std::move(blocks), block);
}

bool PrefixCache::room_for(std::size_t bytes_more, const KvSnapshot* coming, const Entry* replaced) const {
  if (bytes_more > limits_.bytes) return false;
  std::size_t total = bytes() + bytes_more;
  std::size_t count = entries_.size() + 1;
  if (total <= limits_.bytes && count <= limits_.entries) return true;
  BlockLedger::Leaving leaving(blocks_, coming);
  if (replaced && !leased(*replaced)) total -= leaving.bytes_of(*replaced->snapshot, false);
  if (replaced) --count;
  for (auto rank = ranks_.begin(); total > limits_.bytes || count > limits_.entries; ++rank) {
    if (rank == ranks_.end()) return false;
    const Entry& entry = entries_.at(rank->id);
    if (&entry == replaced || leased(entry)) continue;
    total -= leaving.bytes_of(*entry.snapshot, limits_.hand_over);
    --count;
  }
  return true;
}

void PrefixCache::make_room(EntryId keep) {
  for (auto rank = ranks_.begin(); rank != ranks_.end() && over_limits();) {
    const auto [priority, used, id] = *rank++;
    if (id == keep || leased(entries_.at(id))) continue;
    clock_ = std::max(clock_, priority);
    ++counts_.evictions;
    evict(id);
  }
  CHECK(!over_limits(), "bounded: the room that was promised is not there");
  free_what_is_in_the_way();
}

void PrefixCache::discard(KvSnapshotPtr snapshot) {
  blocks_.discard(std::move(snapshot));
  free_what_is_in_the_way();
}

void PrefixCache::evict(EntryId id) {
  if (limits_.hand_over) {
    evicted_.push_back(kept(id));
    blocks_.hand_over(*evicted_.back().snapshot);
    entries_.at(id).snapshot.reset();
  }
  remove(id);
}

void PrefixCache::take_evicted(std::vector<Kept>& out) {
  std::ranges::move(evicted_, std::back_inserter(out));
  evicted_.clear();
}

std::optional<PrefixCache::Kept> PrefixCache::next_unseen() {
  if (unseen_.empty()) return std::nullopt;
  const EntryId id = *unseen_.rbegin();
  unseen_.erase(id);
  return kept(id);
}

std::optional<PrefixCache::Kept> PrefixCache::next_to_leave(std::size_t needed) {
  if (!others_leave_ || bytes() + needed <= limits_.bytes) return std::nullopt;
  std::size_t freed = 0;
  int looked_at = 0;
  for (const Rank& rank : ranks_) {
    if (freed >= needed || ++looked_at > kLeavingLookedAt) break;
    Entry& entry = entries_.at(rank.id);
    const std::size_t size = entry.snapshot->resident_bytes();
    if (size > needed || leased(entry)) continue;
    freed += size;
    if (!std::exchange(entry.said_to_leave, true)) return kept(rank.id);
  }
  others_leave_ = false;
  return std::nullopt;
}

std::vector<EntryId> PrefixCache::by_value() const {
  std::vector<EntryId> ids;
  ids.reserve(ranks_.size());
  for (auto rank = ranks_.rbegin(); rank != ranks_.rend(); ++rank) ids.push_back(rank->id);
  return ids;
}

PrefixCache::Kept PrefixCache::kept(EntryId id) const {
  const Entry& entry = entries_.at(id);
  Kept kept{entry.key, {}, entry.snapshot};
  shelves_.at(entry.key).kept.copy_tokens(id, kept.tokens);
  return kept;
}

bool PrefixCache::reserve(std::size_t bytes) {
  if (!room_for(bytes, nullptr, nullptr)) return false;
  reserved_bytes_ += bytes;
  make_room(EntryId{});
  return true;
}

void PrefixCache::unreserve(std::size_t bytes) {
  CHECK(bytes <= reserved_bytes_);
  reserved_bytes_ -= bytes;
}

void PrefixCache::replace(EntryId id, KvSnapshotPtr snapshot, Duration cost, TimePoint now) {
  Entry& entry = entries_.at(id);
  if (entry.snapshot != snapshot) {
    blocks_.hold(*snapshot);
    blocks_.release(std::exchange(entry.snapshot, std::move(snapshot)));
  }
  entry.cost = cost;
  rank_again(entry, now);
}

void PrefixCache::absorb_redundant(RadixTree& tree, EntryId by) {
  std::optional<EntryId> next = tree.entry_above(by);
  while (next) {
    const EntryId id = *next;
    next = tree.entry_above(id);
    if (tree.ways_below(id) != 1) continue;
    entries_.at(by).hits += entries_.at(id).hits;
    ++counts_.absorbed;
    remove(id);
  }
}

void PrefixCache::remove(EntryId id) {
  const auto found = entries_.find(id);
  Entry& entry = found->second;
  const auto shelf = shelves_.find(entry.key);
  shelf->second.kept.erase(id);
  drop_if_empty(shelf);
  ranks_.erase(entry.rank);
  others_leave_ = true;
  unseen_.erase(id);
  if (limits_.holdings != nullptr) limits_.holdings->drop(entry.holding);
  if (entry.snapshot) blocks_.release(std::move(entry.snapshot));  // else it was handed over
  entries_.erase(found);
}

void PrefixCache::drop_if_empty(Shelves::iterator shelf) {
  if (shelf->second.empty()) shelves_.erase(shelf);
}

std::size_t PrefixCache::bytes() const { return blocks_.bytes() + reserved_bytes_; }

PrefixCache::Stats PrefixCache::stats() const {
  Stats stats = counts_;
  stats.entries = entries_.size();
  stats.bytes = bytes() + unfreed_bytes();
  stats.index_bytes = memory_.bytes();
  stats.pending = pending_.size();
  return stats;
}

bool PrefixCache::consistent() const {
  std::size_t held = 0;
  std::unordered_set<const KvBlock*> counted;
  for (const auto& [id, entry] : entries_) {
    const auto shelf = shelves_.find(entry.key);
    if (shelf == shelves_.end() || !shelf->second.kept.contains(id)) return false;
    if (!ranks_.contains(entry.rank) || entry.rank.id != id) return false;
    for (const KvBlockPtr& block : entry.snapshot->blocks())
      held += counted.insert(block.get()).second ? block->size() : 0;
  }
  for (const auto& [request, announced] : pending_) {
    const auto shelf = shelves_.find(announced.key);
    if (shelf == shelves_.end() || !shelf->second.pending.contains(EntryId{request.value})) return false;
  }
  for (const EntryId id : unseen_) {
    if (!entries_.contains(id)) return false;
  }
  if (over_limits() || bytes() + unfreed_bytes() > limits_.bytes) return false;
  return held == blocks_.held_bytes() && ranks_.size() == entries_.size() && consistent_shelves();
}

bool PrefixCache::consistent_shelves() const {
  std::size_t kept = 0;
  std::size_t pending = 0;
  for (const auto& [key, shelf] : shelves_) {
    if (shelf.empty() || !shelf.kept.consistent() || !shelf.pending.consistent()) return false;
    kept += shelf.kept.size();
    pending += shelf.pending.size();
  }
  return kept == entries_.size() && pending == pending_.size();
}

}  // namespace chasqui
