// Snapshots in blocks: what is stored once, and what is counted.
#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "cache/prefix_cache.h"

namespace chasqui {
namespace {

using BlockTokens = std::vector<Token>;
using Insertion = PrefixCache::Insertion;

constexpr PrefixKey kBlockKey{1, 0};
constexpr TokenCount kBlock = 4;
constexpr std::size_t kEach = 10;  // bytes of a token

BlockTokens counting_from(std::size_t size, Token from) {
  BlockTokens tokens(size);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

KvSnapshotPtr in_blocks(const BlockTokens& tokens) {
  return KvSnapshot::with_room(tokens.size() * kEach, static_cast<TokenCount>(tokens.size()), kBlock);
}

class PrefixCacheBlocks : public testing::Test {
 protected:
  Insertion insert(PrefixCache& cache, const BlockTokens& tokens) {
    now_ += seconds(1);
    const Insertion done = cache.insert(kBlockKey, tokens, in_blocks(tokens), milliseconds(tokens.size()), now_);
    EXPECT_TRUE(cache.consistent());
    return done;
  }
  static BlockTokens with_end(std::size_t common, std::size_t own, Token from) {
    BlockTokens tokens = counting_from(common, 0);
    const BlockTokens end = counting_from(own, from);
    tokens.insert(tokens.end(), end.begin(), end.end());
    return tokens;
  }

  TimePoint now_{};
};

TEST_F(PrefixCacheBlocks, AreStoredOnceForFourThatBeginAlike) {
  PrefixCache cache({.bytes = 100'000});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(insert(cache, with_end(3000, 8, 5000 + 100 * i)), Insertion::stored);
  EXPECT_EQ(cache.stats().entries, 4u);
  EXPECT_EQ(cache.bytes(), (3000 + 4 * 8) * kEach);
}

TEST_F(PrefixCacheBlocks, OfABlockThatDiffersAreNotShared) {
  PrefixCache cache({.bytes = 100'000});
  insert(cache, with_end(10, 6, 500));
  insert(cache, with_end(10, 6, 600));
  EXPECT_EQ(cache.bytes(), (8 + 8 + 8) * kEach) << "two whole blocks are the same, the third begins alike";
}

TEST_F(PrefixCacheBlocks, StayWhileOneSnapshotHasThem) {
  PrefixCache cache({.bytes = 1'000});
  const BlockTokens first = with_end(40, 20, 500);
  const BlockTokens second = with_end(40, 20, 600);
  insert(cache, first);
  insert(cache, second);
  EXPECT_EQ(cache.bytes(), 800u);
  cache.touch(cache.match(kBlockKey, second, 60), now_ += seconds(1));
  EXPECT_EQ(insert(cache, counting_from(40, 9'000)), Insertion::stored);
  EXPECT_EQ(cache.stats().evictions, 1u) << "one of them frees 200 bytes, which is enough";
  EXPECT_EQ(cache.match(kBlockKey, second, 60).length, 60);
  EXPECT_EQ(cache.bytes(), 1'000u);
}

TEST_F(PrefixCacheBlocks, ThatWouldNotFitAloneFitBesideThoseThatShareThem) {
  PrefixCache cache({.bytes = 1'000});
  insert(cache, with_end(80, 8, 500));
  EXPECT_EQ(insert(cache, with_end(80, 8, 600)), Insertion::stored);
  EXPECT_EQ(insert(cache, with_end(80, 4, 700)), Insertion::stored);
  EXPECT_EQ(cache.stats().evictions, 0u);
  EXPECT_EQ(cache.bytes(), 1'000u);
}

TEST_F(PrefixCacheBlocks, ThatAreLeasedCountUntilTheLeaseEnds) {
  PrefixCache cache({.bytes = 1'000});
  insert(cache, with_end(40, 20, 500));
  insert(cache, with_end(40, 20, 600));
  KvSnapshotPtr lease = cache.match(kBlockKey, with_end(40, 20, 500), 60).snapshot;
  EXPECT_EQ(cache.erase_tenant(kBlockKey.tenant), 2u);
  EXPECT_EQ(cache.bytes(), 600u) << "what the lease has, and no more";
  EXPECT_EQ(insert(cache, with_end(40, 8, 500)), Insertion::refused) << "480 bytes of other blocks";
  lease.reset();
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(insert(cache, with_end(40, 8, 500)), Insertion::stored);
}

// Gigabytes without any memory: only the sizes count.
class PrefixCacheFrees : public testing::Test {
 protected:
  static constexpr std::size_t kMiB = std::size_t{1} << 20;
  static constexpr std::size_t kStep = 64 * kMiB;

  // Of so many blocks of 16 MiB.
  void insert(std::size_t blocks, Token from) {
    const BlockTokens tokens = counting_from(blocks * kBlock, from);
    const auto kv = KvSnapshot::hollow(blocks * 16 * kMiB, static_cast<TokenCount>(tokens.size()), kBlock);
    for (const KvBlockPtr& block : kv->blocks()) blocks_.push_back(block);
    EXPECT_EQ(cache_.insert(kBlockKey, tokens, kv, seconds(1), now_ += seconds(1)), Insertion::stored);
  }
  // Bytes of all that was ever inserted.
  std::size_t resident() const {
    return 16 * kMiB *
           static_cast<std::size_t>(std::ranges::count_if(blocks_, [](const auto& block) { return !block.expired(); }));
  }

  PrefixCache cache_{{.bytes = 1024 * kMiB}};
  std::vector<std::weak_ptr<const KvBlock>> blocks_;
  TimePoint now_{};
};

TEST_F(PrefixCacheFrees, WhatIsErasedAPartInEachStep) {
  insert(60, 0);
  EXPECT_EQ(cache_.erase_tenant(kBlockKey.tenant), 1u);
  EXPECT_EQ(cache_.bytes(), 0u) << "all of it is room";
  int steps = 0;
  for (std::size_t left = 960 * kMiB; left > 0; ++steps) {
    EXPECT_GE(resident() + kStep, left) << "step " << steps;
    EXPECT_EQ(cache_.stats().bytes, resident()) << "what is still there is shown";
    EXPECT_TRUE(cache_.consistent());
    left = resident();
    cache_.free_some();
  }
  EXPECT_EQ(steps, 15);
  EXPECT_EQ(cache_.unfreed_bytes(), 0u);
}

TEST_F(PrefixCacheFrees, SoonerOnlyWhatIsInTheWay) {
  insert(60, 0);
  cache_.erase_tenant(kBlockKey.tenant);
  ASSERT_EQ(resident(), 896 * kMiB);
  insert(20, 1000);
  EXPECT_EQ(resident(), 1024 * kMiB) << "never more than the limit, and no less than there is room for";
  EXPECT_TRUE(cache_.consistent());
}

TEST_F(PrefixCacheFrees, OfALargeEntryThatIsEvictedWhatASmallOneNeeds) {
  insert(60, 0);
  insert(10, 1000);
  EXPECT_EQ(cache_.stats().evictions, 1u);
  EXPECT_EQ(cache_.bytes(), 160 * kMiB);
  EXPECT_EQ(resident(), 1024 * kMiB);
}

TEST_F(PrefixCacheFrees, NothingThatIsStillLeased) {
  insert(60, 0);
  KvSnapshotPtr lease = cache_.match(kBlockKey, counting_from(240, 0), INT32_MAX).snapshot;
  cache_.erase_tenant(kBlockKey.tenant);
  for (int i = 0; i < 20; ++i) cache_.free_some();
  EXPECT_EQ(resident(), 960 * kMiB);
  EXPECT_EQ(cache_.bytes(), 960 * kMiB);
  cache_.discard(std::move(lease));
  EXPECT_EQ(cache_.bytes(), 0u);
  EXPECT_EQ(cache_.stats().bytes, resident());
  EXPECT_GT(resident(), 800 * kMiB);
  EXPECT_TRUE(cache_.consistent());
}

TEST_F(PrefixCacheBlocks, AreCountedExactlyWhateverHappens) {
  for (const bool hand_over : {false, true}) {
    std::minstd_rand random(hand_over ? 1 : 2);
    PrefixCache cache({.bytes = 600, .entries = 12, .hand_over = hand_over});
    std::vector<KvSnapshotPtr> leases;
    std::vector<PrefixCache::Kept> evicted;
    for (int i = 0; i < 5'000; ++i) {
      BlockTokens tokens(1 + random() % 30);
      const Token alphabet = random() % 3 == 0 ? 2 : 1;
      for (Token& token : tokens) token = random() % 8 == 0 ? static_cast<Token>(random() % 2) * alphabet : 0;
      PrefixCache::Match match = cache.match(kBlockKey, tokens, INT32_MAX);
      if (random() % 2 == 0) cache.touch(match, now_);
      if (hand_over) match.snapshot.reset();  // what is handed over is the taker's to count
      if (!hand_over && random() % 8 == 0 && match.length > 0 && leases.size() < 3) leases.push_back(match.snapshot);
      if (random() % 4 == 0 && !leases.empty()) leases.erase(leases.begin());
      insert(cache, tokens);
      cache.take_evicted(evicted);
      evicted.clear();
      std::set<const KvBlock*> resident;
      std::size_t bytes = 0;
      const auto count = [&](const KvSnapshot& snapshot) {
        for (const KvBlockPtr& block : snapshot.blocks())
          bytes += resident.insert(block.get()).second ? block->size() : 0;
      };
      for (const EntryId id : cache.by_value()) count(*cache.kept(id).snapshot);
      for (const KvSnapshotPtr& lease : leases) count(*lease);
      if (match.snapshot) count(*match.snapshot);
      ASSERT_EQ(cache.bytes(), bytes);
      ASSERT_LE(bytes, 600u);
    }
    EXPECT_GT(cache.stats().evictions, 300u);
  }
}

}  // namespace
}  // namespace chasqui
