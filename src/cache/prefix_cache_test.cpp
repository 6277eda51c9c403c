#include "cache/prefix_cache.h"

#include <gtest/gtest.h>

#include "core/fake_tokens.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;
using Insertion = PrefixCache::Insertion;

constexpr PrefixKey kKey{1, 0};
constexpr TokenCount kAll = INT32_MAX;
constexpr TimePoint kStart{};

KvSnapshotPtr snapshot_of(const Tokens& tokens, std::size_t bytes_per_token = 10) {
  return std::make_shared<const KvSnapshot>(tokens.size() * bytes_per_token, static_cast<TokenCount>(tokens.size()));
}

// Ten bytes and a millisecond for each token: equal worth, so that hits and age decide.
class PrefixCacheTest : public testing::Test {
 protected:
  Insertion insert(PrefixCache& cache, const Tokens& tokens, PrefixKey key = kKey, milliseconds cost = {}) {
    now_ += seconds(1);
    if (cost == milliseconds::zero()) cost = milliseconds(tokens.size());
    const Insertion done = cache.insert(key, tokens, snapshot_of(tokens), cost, now_);
    EXPECT_TRUE(cache.consistent());
    return done;
  }
  TokenCount matched(const PrefixCache& cache, const Tokens& tokens, PrefixKey key = kKey) const {
    return cache.match(key, tokens, kAll).length;
  }
  void use(PrefixCache& cache, const Tokens& tokens) {
    now_ += seconds(1);
    cache.touch(cache.match(kKey, tokens, kAll), now_);
  }

  TimePoint now_ = kStart;
};

TEST_F(PrefixCacheTest, ServesThePartThatAPromptShares) {
  PrefixCache cache({.bytes = 1000});
  EXPECT_EQ(insert(cache, {1, 2, 3, 4}), Insertion::stored);
  const PrefixCache::Match match = cache.match(kKey, Tokens{1, 2, 3, 9, 9}, kAll);
  EXPECT_EQ(match.length, 3);
  ASSERT_NE(match.snapshot, nullptr);
  EXPECT_EQ(match.snapshot->tokens(), 4) << "restore all of it, then trim to the match";
}

TEST_F(PrefixCacheTest, MatchesNoMoreThanAsked) {
  PrefixCache cache({.bytes = 1000});
  const Tokens prompt = counting(8);
  insert(cache, prompt);
  EXPECT_EQ(cache.match(kKey, prompt, 7).length, 7) << "the last token is computed again, for its logits";
  EXPECT_EQ(cache.match(kKey, Tokens{0}, 0).length, 0) << "a prompt of one token has nothing to gain";
  EXPECT_EQ(cache.match(kKey, Tokens{0}, 0).snapshot, nullptr);
  EXPECT_EQ(cache.match(kKey, prompt, -1).length, 0);
  EXPECT_EQ(cache.match(kKey, {}, kAll).length, 0);
}

TEST_F(PrefixCacheTest, KeysNeverServeEachOther) {
  PrefixCache cache({.bytes = 1000});
  insert(cache, counting(5), {1, 0});
  EXPECT_EQ(matched(cache, counting(5), {1, 0}), 5);
  EXPECT_EQ(matched(cache, counting(5), {2, 0}), 0) << "another tenant";
  EXPECT_EQ(matched(cache, counting(5), {1, 1}), 0) << "another adapter";
}

TEST_F(PrefixCacheTest, TheNextTurnAbsorbsTheTurnBefore) {
  PrefixCache cache({.bytes = 1000});
  insert(cache, counting(10));
  insert(cache, counting(20));
  EXPECT_EQ(cache.stats().entries, 1U);
  EXPECT_EQ(cache.stats().absorbed, 1U);
  EXPECT_EQ(cache.bytes(), 200U);
  EXPECT_EQ(matched(cache, counting(10)), 10);
}

TEST_F(PrefixCacheTest, WhatALongerEntryServesIsNotStored) {
  PrefixCache cache({.bytes = 1000});
  insert(cache, counting(20));
  EXPECT_EQ(insert(cache, counting(10)), Insertion::covered);
  EXPECT_EQ(cache.bytes(), 200U);
}

TEST_F(PrefixCacheTest, ABranchPointStays) {
  PrefixCache cache({.bytes = 1000});
  const Tokens system = counting(10);
  insert(cache, with(system, {100, 101}));
  insert(cache, with(system, {200, 201}));
  EXPECT_EQ(insert(cache, system), Insertion::stored) << "two ways lead on: a third is served soonest by this one";
  insert(cache, with(system, {300, 301}));
  EXPECT_EQ(cache.stats().entries, 4U);
  EXPECT_EQ(cache.match(kKey, with(system, {7}), kAll).snapshot->tokens(), 10);
  EXPECT_EQ(cache.stats().absorbed, 0U);
}

TEST_F(PrefixCacheTest, TheSameTokensReplaceTheirSnapshot) {
  PrefixCache cache({.bytes = 1000});
  insert(cache, counting(10));
  const KvSnapshotPtr newer = snapshot_of(counting(10));
  EXPECT_EQ(cache.insert(kKey, counting(10), newer, milliseconds(10), now_), Insertion::stored);
  EXPECT_EQ(cache.insert(kKey, counting(10), newer, milliseconds(10), now_), Insertion::stored) << "once more";
  EXPECT_EQ(cache.match(kKey, counting(10), kAll).snapshot, newer);
  EXPECT_EQ(cache.bytes(), 100U);
  EXPECT_TRUE(cache.consistent());
}

TEST_F(PrefixCacheTest, RefusesWhatIsLargerThanTheCap) {
  PrefixCache cache({.bytes = 100});
  insert(cache, counting(10));
  EXPECT_EQ(insert(cache, counting(11, 50)), Insertion::refused);
  EXPECT_EQ(matched(cache, counting(10)), 10) << "a refusal evicts nothing";
  EXPECT_EQ(cache.stats().refused, 1U);
  PrefixCache none({.bytes = 0});
  EXPECT_EQ(insert(none, {1}), Insertion::refused) << "a cap of zero switches the cache off";
}

TEST_F(PrefixCacheTest, EvictsWhatWasUsedLongestAgo) {
  PrefixCache cache({.bytes = 300});
  for (const Token from : {0, 100, 200}) insert(cache, counting(10, from));
  insert(cache, counting(10, 300));
  EXPECT_EQ(matched(cache, counting(10, 0)), 0);
  insert(cache, counting(10, 400));
  EXPECT_EQ(matched(cache, counting(10, 100)), 0);
  EXPECT_EQ(matched(cache, counting(10, 200)), 10);
  EXPECT_EQ(cache.stats().evictions, 2U);
}

TEST_F(PrefixCacheTest, KeepsWhatIsUsedOften) {
  PrefixCache cache({.bytes = 300});
  insert(cache, counting(10));
  use(cache, counting(10));
  for (Token from = 100; from < 300; from += 100) insert(cache, counting(10, from));
  insert(cache, counting(10, 300));
  EXPECT_EQ(matched(cache, counting(10)), 10) << "the oldest, but the one that was asked for";
}

TEST_F(PrefixCacheTest, KeepsWhatIsDearToComputeAgain) {
  PrefixCache cache({.bytes = 300});
  insert(cache, counting(10), kKey, milliseconds(50));
  insert(cache, counting(10, 100), kKey, milliseconds(10));
  insert(cache, counting(10, 200), kKey, milliseconds(10));
  insert(cache, counting(10, 300), kKey, milliseconds(10));
  EXPECT_EQ(matched(cache, counting(10)), 10);
  EXPECT_EQ(matched(cache, counting(10, 100)), 0);
}

TEST_F(PrefixCacheTest, YesterdaysFavouriteGoesInTheEnd) {
  PrefixCache cache({.bytes = 300});
  insert(cache, counting(10));
  for (int i = 0; i < 1000; ++i) use(cache, counting(10));
  int turns = 0;
  for (; turns < 1000 && matched(cache, counting(10)) > 0; ++turns) insert(cache, counting(10, 100 + 10 * turns));
  EXPECT_GT(turns, 10);
  EXPECT_LT(turns, 3 * PrefixCache::kHitsMax + 10) << "about one turnover of the cache for each hit that counts";
}

TEST_F(PrefixCacheTest, AskingIsNoUse) {
  PrefixCache cache({.bytes = 200});
  insert(cache, counting(10));
  insert(cache, counting(10, 100));
  for (int i = 0; i < 10; ++i) matched(cache, counting(10));
  EXPECT_EQ(cache.stats().hits, 0U) << "a request that waits may be looked up in every step";
  insert(cache, counting(10, 200));
  EXPECT_EQ(matched(cache, counting(10)), 0);
}

TEST_F(PrefixCacheTest, PassesOverWhatIsLeased) {
  PrefixCache cache({.bytes = 200});
  insert(cache, counting(10));
  insert(cache, counting(10, 100));
  PrefixCache::Match lease = cache.match(kKey, counting(10), kAll);
  insert(cache, counting(10, 200));
  EXPECT_EQ(matched(cache, counting(10)), 10);
  EXPECT_EQ(matched(cache, counting(10, 100)), 0);
  EXPECT_EQ(insert(cache, counting(11, 300)), Insertion::refused) << "the lease leaves room for 100 bytes";
  lease = {};
  EXPECT_EQ(insert(cache, counting(11, 300)), Insertion::stored);
}

TEST_F(PrefixCacheTest, CountsWhatHasLeftUntilItsLeaseEnds) {
  PrefixCache cache({.bytes = 350});
  insert(cache, counting(10));
  PrefixCache::Match lease = cache.match(kKey, counting(10), kAll);
  EXPECT_EQ(insert(cache, counting(20)), Insertion::stored);
  EXPECT_EQ(cache.stats().entries, 1U) << "absorbed all the same";
  EXPECT_EQ(cache.bytes(), 300U) << "both are resident";
  EXPECT_EQ(insert(cache, counting(26, 100)), Insertion::refused);
  cache.touch(lease, now_);
  EXPECT_EQ(cache.stats().hits, 1U) << "its entry has gone, the hit counts";
  lease = {};
  EXPECT_EQ(cache.bytes(), 200U);
  EXPECT_EQ(insert(cache, counting(15, 100)), Insertion::stored);
}

TEST_F(PrefixCacheTest, ErasesATenantWithAllItsAdapters) {
  PrefixCache cache({.bytes = 1000});
  insert(cache, counting(5), {1, 0});
  insert(cache, counting(5), {1, 7});
  insert(cache, counting(5), {2, 0});
  EXPECT_EQ(cache.erase_tenant(1), 2U);
  EXPECT_EQ(cache.erase_tenant(1), 0U);
  EXPECT_EQ(matched(cache, counting(5), {1, 7}), 0);
  EXPECT_EQ(matched(cache, counting(5), {2, 0}), 5);
  EXPECT_EQ(cache.bytes(), 50U);
  EXPECT_TRUE(cache.consistent());
}

TEST_F(PrefixCacheTest, CountsUses) {
  PrefixCache cache({.bytes = 1000});
  insert(cache, counting(10));
  use(cache, counting(8));
  use(cache, counting(3, 100));
  const PrefixCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.hits, 1U);
  EXPECT_EQ(stats.misses, 1U);
  EXPECT_EQ(stats.tokens_matched, 8U);
  EXPECT_GT(stats.index_bytes, 10 * sizeof(Token));
}

TEST_F(PrefixCacheTest, BoundsTheEntriesToo) {
  PrefixCache cache({.bytes = 1'000'000, .entries = 3});
  for (Token from = 0; from < 100; from += 10) insert(cache, counting(1, from));
  EXPECT_EQ(cache.stats().entries, 3U);
  EXPECT_EQ(matched(cache, {90}), 1);
}

TEST_F(PrefixCacheTest, WhereKvCannotBeCutOnlyWholeEntriesServe) {
  PrefixCache cache({.bytes = 1000, .cut_anywhere = false});
  insert(cache, counting(10));
  insert(cache, counting(20));
  EXPECT_EQ(cache.stats().entries, 2U) << "the longer one cannot stand in for the shorter one";
  EXPECT_EQ(matched(cache, counting(15)), 10);
  EXPECT_EQ(matched(cache, counting(9)), 0);
  EXPECT_EQ(cache.match(kKey, counting(20), 19).length, 10);
  EXPECT_EQ(insert(cache, counting(5)), Insertion::stored);
}

TEST_F(PrefixCacheTest, TellsWhoIsComputingAPrefix) {
  PrefixCache cache({.bytes = 1000});
  const Tokens system = counting(10);
  cache.announce(kKey, with(system, {100, 101}), RequestId{7});
  cache.announce(kKey, with(system, {200}), RequestId{8});
  const auto newcomer = cache.match_pending(kKey, with(system, {300}), kAll);
  EXPECT_EQ(newcomer.length, 10);
  EXPECT_EQ(newcomer.request, RequestId{8}) << "has less to compute, so it is there first";
  EXPECT_EQ(cache.match_pending(kKey, with(system, {100}), kAll).request, RequestId{7});
  EXPECT_EQ(cache.match_pending({2, 0}, system, kAll).length, 0);
  EXPECT_EQ(matched(cache, system), 0) << "a promise is no entry";
  cache.withdraw(RequestId{8});
  EXPECT_EQ(cache.match_pending(kKey, system, kAll).request, RequestId{7});
  cache.withdraw(RequestId{7});
  cache.withdraw(RequestId{7});
  EXPECT_EQ(cache.match_pending(kKey, system, kAll).length, 0);
  EXPECT_TRUE(cache.consistent());
}

TEST_F(PrefixCacheTest, OfTwoWhoComputeTheSameTheFirstIsAnnounced) {
  PrefixCache cache({.bytes = 1000});
  cache.announce(kKey, counting(10), RequestId{2});
  cache.announce(kKey, counting(10), RequestId{1});
  EXPECT_EQ(cache.match_pending(kKey, counting(10), 9).request, RequestId{2});
  cache.withdraw(RequestId{2});
  EXPECT_EQ(cache.match_pending(kKey, counting(10), 9).request, RequestId{1}) << "the other one goes on";
}

// Counts how often it is asked.
class AskedMemory final : public std::pmr::memory_resource {
 public:
  std::size_t asked = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    ++asked;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

TEST_F(PrefixCacheTest, LookupsAndUsesAllocateNothing) {
  AskedMemory memory;
  PrefixCache cache({.bytes = 1'000'000}, &memory);
  for (Token i = 0; i < 100; ++i) insert(cache, with(counting(100), {1000 + i}));
  cache.announce(kKey, counting(50), RequestId{1});
  const std::size_t before = memory.asked;
  for (Token i = 0; i < 200; ++i) use(cache, with(counting(100), {1000 + i}));
  cache.match_pending(kKey, counting(70), kAll);
  EXPECT_EQ(memory.asked, before);
}

TEST_F(PrefixCacheTest, KeysWithoutEntriesTakeNoMemory) {
  PrefixCache cache({.bytes = 1'000'000});
  for (std::uint32_t tenant = 0; tenant < 100; ++tenant) insert(cache, counting(1000), {tenant, 0});
  EXPECT_GT(cache.stats().index_bytes, 100 * 1000 * sizeof(Token));
  for (std::uint32_t tenant = 0; tenant < 100; ++tenant) cache.erase_tenant(tenant);
  EXPECT_LT(cache.stats().index_bytes, 16'384U) << "only the tables themselves";
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST_F(PrefixCacheTest, ManyWhoDifferInTheLastTokenOnly) {
  PrefixCache cache({.bytes = 1000 * 2010});
  for (Token i = 0; i < 10'000; ++i) {
    const Tokens tokens = with(counting(200), {1000 + i});
    cache.insert(kKey, tokens, snapshot_of(tokens), milliseconds(201), now_ += seconds(1));
  }
  EXPECT_EQ(cache.stats().entries, 1000U);
  EXPECT_EQ(cache.stats().evictions, 9000U);
  EXPECT_EQ(matched(cache, counting(201)), 200);
  EXPECT_TRUE(cache.consistent());
}

}  // namespace
}  // namespace chasqui
