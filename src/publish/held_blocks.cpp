#include "publish/held_blocks.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "base/error.h"

namespace chasqui::publish {
namespace {

constexpr std::size_t index_of(Medium medium) { return static_cast<std::size_t>(medium); }

}  // namespace

bool HeldBlocks::name(AdapterNames names) {
  if (names == names_) return false;
  bool wrong = false;
  for (auto& [hash, block] : blocks_) {
    if (std::ranges::count(block.told, true) == 0) continue;
    const auto now = names.find(block.adapters);
    wrong = wrong || now == names.end() || now->second != names_.at(block.adapters);
    if (now != names.end()) continue;
    block.told = {};
    --told_;
  }
  names_ = std::move(names);
  touch_all();
  return wrong;
}

// Each block after the one before it.
void HeldBlocks::touch_all() {
  std::vector<BlockHash> chain;
  for (const auto& [id, held] : holdings_) {
    chain.clear();
    for (BlockHash hash = held.last; hash != 0; hash = blocks_.at(hash).parent) chain.push_back(hash);
    for (auto hash = chain.rbegin(); hash != chain.rend(); ++hash) touched_.push_back({*hash, held.medium});
  }
}

void HeldBlocks::apply(const HoldingChanges& changes) {
  for (const auto& [id, holding] : changes.begun) begin(id, holding);
  for (const std::uint64_t id : changes.ended) end(id);
}

// Where a hash stands for another block already, the holding ends before it: routers know less than there is, and never
// take one prefix for another.
void HeldBlocks::begin(std::uint64_t id, const Holding& holding) {
  BlockHash last = 0;
  for (std::size_t at = 0; at < holding.tokens.size(); at += kHeldBlock) {
    const auto tokens = std::span(holding.tokens).subspan(at, kHeldBlock);
    const BlockHash hash = hash_(last, holding.adapters, tokens);
    const auto [found, fresh] = blocks_.try_emplace(hash);
    Block& block = found->second;
    if (fresh) {
      block.parent = last;
      block.adapters = holding.adapters;
      std::ranges::copy(tokens, block.tokens.begin());
    } else if (block.parent != last || block.adapters != holding.adapters ||
               !std::ranges::equal(block.tokens, tokens)) {
      break;
    }
    if (block.holders[index_of(holding.medium)]++ == 0) touched_.push_back({hash, holding.medium});
    last = hash;
  }
  CHECK(holdings_.emplace(id, Held{last, holding.medium}).second, "a holding begins twice");
}

void HeldBlocks::end(std::uint64_t id) {
  const auto found = holdings_.find(id);
  CHECK(found != holdings_.end(), "a holding ends that has not begun");
  const auto [last, medium] = found->second;
  for (BlockHash hash = last; hash != 0;) {
    Block& block = blocks_.at(hash);
    if (--block.holders[index_of(medium)] == 0) touched_.push_back({hash, medium});
    hash = block.parent;
  }
  holdings_.erase(found);
}

void HeldBlocks::add_stored(BlockHash hash, const Block& block, Medium medium, std::vector<StoredRun>& out) const {
  const bool goes_on = !out.empty() && out.back().medium == medium && out.back().hashes.back() == block.parent &&
                       out.back().hashes.size() < kRun;
  if (!goes_on) out.push_back({block.parent, medium, names_.at(block.adapters), {}, {}});
  out.back().hashes.push_back(hash);
  out.back().tokens.insert(out.back().tokens.end(), block.tokens.begin(), block.tokens.end());
}

BlockChanges HeldBlocks::take_changes() {
  BlockChanges out;
  for (const auto& [hash, medium] : touched_) {
    Block& block = blocks_.at(hash);
    const bool held = block.holders[index_of(medium)] > 0 && names_.contains(block.adapters);
    const bool known = std::ranges::count(block.told, true) > 0;
    if (std::exchange(block.told[index_of(medium)], held) == held) continue;
    if (known != (std::ranges::count(block.told, true) > 0)) told_ += held ? 1 : -1;
    if (held) {
      add_stored(hash, block, medium, out.stored);
      continue;
    }
    const auto same = std::ranges::find(out.removed, medium, &RemovedBlocks::medium);
    (same != out.removed.end() ? *same : out.removed.emplace_back(RemovedBlocks{medium, {}})).hashes.push_back(hash);
  }
  for (const auto& [hash, medium] : touched_) {
    const auto found = blocks_.find(hash);
    if (found != blocks_.end() && std::ranges::count(found->second.holders, 0U) == kMedia) blocks_.erase(found);
  }
  touched_.clear();
  return out;
}

BlockChanges HeldBlocks::all() const {
  BlockChanges out;
  std::array<std::unordered_set<BlockHash>, kMedia> seen;
  std::vector<BlockHash> chain;
  for (const auto& [id, held] : holdings_) {
    chain.clear();
    for (BlockHash hash = held.last; hash != 0 && seen[index_of(held.medium)].insert(hash).second;) {
      chain.push_back(hash);
      hash = blocks_.at(hash).parent;
    }
    for (auto hash = chain.rbegin(); hash != chain.rend(); ++hash) {
      const Block& block = blocks_.at(*hash);
      if (block.told[index_of(held.medium)]) add_stored(*hash, block, held.medium, out.stored);
    }
  }
  return out;
}

bool HeldBlocks::consistent() const {
  std::unordered_map<BlockHash, std::array<std::uint32_t, kMedia>> holders;
  for (const auto& [id, held] : holdings_) {
    for (BlockHash hash = held.last; hash != 0; hash = blocks_.at(hash).parent) ++holders[hash][index_of(held.medium)];
  }
  if (!touched_.empty() || holders.size() != blocks_.size()) return false;
  std::size_t told = 0;
  for (const auto& [hash, block] : blocks_) {
    const bool named = names_.contains(block.adapters);
    for (std::size_t medium = 0; medium < kMedia; ++medium) {
      if (block.holders[medium] != holders[hash][medium]) return false;
      if (block.told[medium] != (named && block.holders[medium] > 0)) return false;
    }
    told += named ? 1 : 0;
  }
  return told == told_;
}

}  // namespace chasqui::publish
