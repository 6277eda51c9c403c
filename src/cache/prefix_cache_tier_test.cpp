// What the prefix cache does for the tier below it.
#include <gtest/gtest.h>

#include "cache/prefix_cache.h"
#include "core/fake_tokens.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;
using Insertion = PrefixCache::Insertion;

constexpr PrefixKey kTierKey{1, 0};

class HandOverTest : public testing::Test {
 protected:
  Insertion insert(PrefixCache& cache, const Tokens& tokens) {
    now_ += seconds(1);
    auto snapshot = std::make_shared<const KvSnapshot>(tokens.size() * 10, static_cast<TokenCount>(tokens.size()));
    const Insertion done = cache.insert(kTierKey, tokens, std::move(snapshot), milliseconds(tokens.size()), now_);
    EXPECT_TRUE(cache.consistent());
    return done;
  }
  void use(PrefixCache& cache, const Tokens& tokens) {
    now_ += seconds(1);
    cache.touch(cache.match(kTierKey, tokens, INT32_MAX), now_);
  }
  static std::vector<Tokens> evicted(PrefixCache& cache) {
    std::vector<PrefixCache::Kept> kept;
    cache.take_evicted(kept);
    std::vector<Tokens> tokens;
    for (const PrefixCache::Kept& entry : kept) {
      EXPECT_EQ(entry.key, kTierKey);
      EXPECT_TRUE(entry.snapshot && std::cmp_equal(entry.snapshot->tokens(), entry.tokens.size()));
      tokens.push_back(entry.tokens);
    }
    return tokens;
  }

  TimePoint now_{};
};

TEST_F(HandOverTest, WhatHasToGoIsHandedOverOnceAndCountsNoMore) {
  PrefixCache cache({.bytes = 200, .hand_over = true});
  insert(cache, counting(10));
  insert(cache, counting(10, 100));
  EXPECT_TRUE(evicted(cache).empty());
  insert(cache, counting(10, 200));
  EXPECT_EQ(cache.bytes(), 200u) << "not even before it is taken";
  EXPECT_EQ(evicted(cache), std::vector<Tokens>{counting(10)});
  EXPECT_TRUE(evicted(cache).empty());
}

TEST_F(HandOverTest, WhatALongerEntryServesIsNotHandedOver) {
  PrefixCache cache({.bytes = 1000, .hand_over = true});
  insert(cache, counting(10));
  insert(cache, counting(20));
  EXPECT_TRUE(evicted(cache).empty());
}

TEST_F(HandOverTest, GivesEachEntryOnceNewestFirst) {
  PrefixCache cache({.bytes = 300, .hand_over = true});
  insert(cache, counting(10));
  insert(cache, counting(10, 100));
  EXPECT_EQ(cache.next_unseen()->tokens, counting(10, 100));
  insert(cache, counting(10, 200));
  EXPECT_EQ(cache.next_unseen()->tokens, counting(10, 200));
  EXPECT_EQ(cache.next_unseen()->tokens, counting(10));
  EXPECT_FALSE(cache.next_unseen());
  insert(cache, counting(10, 300));
  insert(cache, counting(10, 400));
  insert(cache, counting(10, 500));
  insert(cache, counting(10, 600));  // 300 has gone
  EXPECT_EQ(cache.next_unseen()->tokens, counting(10, 600));
  EXPECT_EQ(cache.next_unseen()->tokens, counting(10, 500));
  EXPECT_EQ(cache.next_unseen()->tokens, counting(10, 400));
  EXPECT_FALSE(cache.next_unseen());
}

TEST_F(HandOverTest, KnowsTheMostValuableFirst) {
  PrefixCache cache({.bytes = 300, .hand_over = true});
  for (const Token from : {0, 100, 200}) insert(cache, counting(10, from));
  for (int i = 0; i < 2; ++i) use(cache, counting(10, 100));
  use(cache, counting(10));
  std::vector<Tokens> order;
  for (const EntryId id : cache.by_value()) order.push_back(cache.kept(id).tokens);
  EXPECT_EQ(order, (std::vector<Tokens>{counting(10, 100), counting(10), counting(10, 200)}));
}

TEST_F(HandOverTest, ReservedRoomBelongsToOneEntry) {
  PrefixCache cache({.bytes = 200, .hand_over = true});
  insert(cache, counting(10));
  insert(cache, counting(10, 100));
  EXPECT_FALSE(cache.reserve(201));
  EXPECT_TRUE(cache.reserve(150));
  EXPECT_EQ(cache.bytes(), 150u) << "both had to go";
  EXPECT_EQ(evicted(cache).size(), 2u);
  EXPECT_EQ(insert(cache, counting(10)), Insertion::refused);
  EXPECT_EQ(insert(cache, counting(5)), Insertion::stored);
  EXPECT_FALSE(cache.reserve(51));
  cache.unreserve(150);
  EXPECT_EQ(insert(cache, counting(10, 100)), Insertion::stored);
}

}  // namespace
}  // namespace chasqui
