#include "cache/block_ledger.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace chasqui {

void BlockLedger::hold(const KvSnapshot& snapshot) {
  for (const KvBlockPtr& block : snapshot.blocks()) {
    if (++held_[block.get()] > 1) continue;
    held_bytes_ += block->size();
    leavers_.erase(block.get());
  }
}

bool BlockLedger::drop(const KvBlock& block) {
  const auto found = held_.find(&block);
  CHECK(found != held_.end(), "conservation: a block is released that was not held");
  if (--found->second > 0) return false;
  held_.erase(found);
  held_bytes_ -= block.size();
  return true;
}

void BlockLedger::release(KvSnapshotPtr snapshot) {
  std::erase_if(leavers_, [](const auto& leaver) { return leaver.second.block.expired(); });
  KvSnapshot::Blocks gone;
  for (const KvBlockPtr& block : snapshot->blocks()) {
    if (drop(*block)) gone.push_back(block);
  }
  snapshot.reset();
  for (KvBlockPtr& block : gone) {
    if (block.use_count() > 1) {
      leavers_.insert_or_assign(block.get(), Leaver{block, block->size()});
    } else {
      free_soon(std::move(block));
    }
  }
}

void BlockLedger::discard(KvSnapshotPtr snapshot) {
  if (!snapshot || snapshot.use_count() > 1) return;
  KvSnapshot::Blocks blocks = snapshot->blocks();
  snapshot.reset();
  for (KvBlockPtr& block : blocks) {
    if (block.use_count() > 1) continue;
    leavers_.erase(block.get());  // this was the last lease on it
    free_soon(std::move(block));
  }
}

void BlockLedger::free_soon(KvBlockPtr block) {
  const std::size_t size = block->size();
  if (unfreed_.empty() && size <= may_free_) {
    may_free_ -= size;
    return;
  }
  unfreed_bytes_ += size;
  unfreed_.push_back(std::move(block));
}

void BlockLedger::free_some() {
  may_free_ = kFreedAtOnce;
  while (!unfreed_.empty() && (unfreed_.front()->size() <= may_free_ || may_free_ == kFreedAtOnce)) {
    const std::size_t size = unfreed_.front()->size();
    may_free_ -= std::min(size, may_free_);
    unfreed_bytes_ -= size;
    unfreed_.pop_front();
  }
}

void BlockLedger::free_down_to(std::size_t unfreed) {
  while (unfreed_bytes_ > unfreed) {
    unfreed_bytes_ -= unfreed_.front()->size();
    unfreed_.pop_front();
  }
}

void BlockLedger::hand_over(const KvSnapshot& snapshot) {
  for (const KvBlockPtr& block : snapshot.blocks()) drop(*block);
}

std::size_t BlockLedger::bytes() const {
  std::size_t sum = held_bytes_;
  for (const auto& [block, leaver] : leavers_) sum += leaver.block.expired() ? 0 : leaver.bytes;
  return sum;
}

std::size_t BlockLedger::more_with(const KvSnapshot& snapshot) const {
  std::size_t more = 0;
  for (const KvBlockPtr& block : snapshot.blocks()) {
    if (held_.contains(block.get())) continue;
    const auto leaver = leavers_.find(block.get());
    const bool counts = leaver != leavers_.end() && !leaver->second.block.expired();
    more += counts ? 0 : block->size();
  }
  return more;
}

BlockLedger::Leaving::Leaving(const BlockLedger& ledger, const KvSnapshot* coming) : ledger_(ledger) {
  if (coming == nullptr) return;
  for (const KvBlockPtr& block : coming->blocks()) holders_[block.get()] = 0;
}

std::size_t BlockLedger::Leaving::bytes_of(const KvSnapshot& snapshot, bool handed_over) {
  std::size_t sum = 0;
  for (const KvBlockPtr& block : snapshot.blocks()) {
    const std::size_t all = ledger_.held_.at(block.get());
    const auto [left, fresh] = holders_.try_emplace(block.get(), all);
    if (left->second == 0 || --left->second > 0) continue;
    const bool leased = std::cmp_greater(block.use_count(), all);
    sum += handed_over || !leased ? block->size() : 0;
  }
  return sum;
}

}  // namespace chasqui
