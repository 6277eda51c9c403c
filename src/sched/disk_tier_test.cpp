#include "sched/disk_tier.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "core/fake_tokens.h"
#include "sched/fake_disk.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;
using OrderKind = DiskOrder::Kind;

constexpr LastingKey kName{333, 0};
constexpr TokenCount kLong = 100;  // tokens of a prompt; ten bytes each
constexpr std::size_t kBytes = 1000;

bool is_snapshot_of(const KvSnapshot& kv, const Tokens& tokens) {
  return std::ranges::equal(kv.bytes(), disk_snapshot_of(tokens)->bytes());
}

// A cache for so many prompts, a tier below it, and a disk.
class DiskTierTest : public testing::Test {
 protected:
  explicit DiskTierTest(std::size_t prompts = 2, const DiskLimits& limits = {.bytes = 100'000, .queue_bytes = 2000})
      : cache_({.bytes = prompts * kBytes, .hand_over = true}), tier_(not_ahead(limits), true, cache_) {
    tier_.name(kDiskKey.tenant, kName.tenant);
  }

  // Tests say themselves what is written when.
  static DiskLimits not_ahead(DiskLimits limits) {
    limits.ahead = false;
    return limits;
  }

  void insert(const Tokens& tokens, PrefixKey key = kDiskKey) {
    now_ += seconds(1);
    cache_.insert(key, tokens, disk_snapshot_of(tokens), milliseconds(tokens.size()), now_);
    tier_.take_evicted();
    EXPECT_TRUE(tier_.consistent());
  }
  // Everything that is ordered now and because of it.
  void run_disk() {
    while (run_once()) continue;
    EXPECT_EQ(disk_.files.size(), tier_.stats().store.files);
  }
  bool run_once() {
    std::vector<DiskOrder> orders;
    tier_.take_orders(orders);
    const bool any = !orders.empty();
    for (DiskOutcome& outcome : disk_.carry_out(orders)) tier_.done(std::move(outcome), kRowSeconds, now_);
    EXPECT_TRUE(tier_.consistent() && cache_.consistent());
    return any;
  }
  // Stays in memory, and on disk by itself.
  void write(const Tokens& tokens) {
    insert(tokens);
    tier_.rest();
    run_disk();
  }
  std::uint64_t read(const Tokens& tokens, TokenCount known = 0, double row_seconds = kRowSeconds,
                     PrefixKey key = kDiskKey) {
    return tier_.read(key, tokens, static_cast<TokenCount>(tokens.size()), {known, row_seconds, 0}).file;
  }
  TokenCount in_memory(const Tokens& tokens, PrefixKey key = kDiskKey) const {
    return cache_.match(key, tokens, INT32_MAX).length;
  }
  bool on_disk(const Tokens& tokens) const {
    return std::ranges::any_of(disk_.files, [&](const auto& file) { return file.second.tokens == tokens; });
  }

  TimePoint now_{};
  PrefixCache cache_;
  DiskTier tier_;
  FakeDisk disk_;
};

const Tokens kFirst = test_prompt(kLong, 1);
const Tokens kSecond = test_prompt(kLong, 2);
const Tokens kThird = test_prompt(kLong, 3);

TEST_F(DiskTierTest, WhatHasToLeaveMemoryGoesToDiskAndComesBack) {
  insert(kFirst);
  insert(kSecond);
  EXPECT_FALSE(tier_.writing());
  insert(kThird);
  EXPECT_EQ(in_memory(kFirst), 0);
  run_disk();
  ASSERT_TRUE(on_disk(kFirst));
  EXPECT_FALSE(on_disk(kSecond)) << "it is in memory, and there was no time";

  const std::uint64_t file = read(kFirst);
  ASSERT_NE(file, 0u);
  EXPECT_TRUE(tier_.reading(file));
  run_disk();
  EXPECT_FALSE(tier_.reading(file));
  ASSERT_EQ(in_memory(kFirst), kLong);
  EXPECT_TRUE(is_snapshot_of(*cache_.match(kDiskKey, kFirst, kLong).snapshot, kFirst));
  EXPECT_TRUE(on_disk(kSecond)) << "it made room";
}

TEST_F(DiskTierTest, MemoryIsNeverMoreThanTheCacheAndTheQueue) {
  for (std::uint64_t i = 0; i < 20; ++i) {
    insert(test_prompt(kLong, i));
    EXPECT_LE(cache_.bytes(), 2 * kBytes);
    EXPECT_LE(tier_.stats().queue_bytes, 2000u);
  }
  const DiskTier::Stats stats = tier_.stats();
  EXPECT_EQ(stats.queue, 2u) << "the newest";
  EXPECT_EQ(stats.dropped, 16u);
  run_disk();
  EXPECT_TRUE(on_disk(test_prompt(kLong, 16)) && on_disk(test_prompt(kLong, 17)));
  EXPECT_EQ(tier_.stats().queue_bytes, 0u);
}

TEST_F(DiskTierTest, OneWriteAtATime) {
  for (std::uint64_t i = 0; i < 4; ++i) insert(test_prompt(kLong, i));
  std::vector<DiskOrder> orders;
  tier_.take_orders(orders);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].kind, OrderKind::write);
  std::vector<DiskOrder> none;
  tier_.take_orders(none);
  EXPECT_TRUE(none.empty());
  // What is being written counts, so there is room for one more.
  for (std::uint64_t i = 4; i < 8; ++i) insert(test_prompt(kLong, i));
  EXPECT_EQ(tier_.stats().queue_bytes, 2000u);
  EXPECT_EQ(tier_.stats().queue, 2u);
}

TEST_F(DiskTierTest, RestingWritesTheNewestAndLeavesItInMemory) {
  insert(kFirst);
  insert(kSecond);
  tier_.rest();
  tier_.rest();
  EXPECT_EQ(tier_.stats().queue, 1u) << "one after the other";
  EXPECT_EQ(tier_.stats().queue_bytes, 0u) << "the cache counts it";
  run_disk();
  EXPECT_TRUE(on_disk(kSecond));
  EXPECT_FALSE(on_disk(kFirst));
  tier_.rest();
  run_disk();
  EXPECT_TRUE(on_disk(kFirst));
  tier_.rest();
  EXPECT_FALSE(tier_.writing()) << "everything is there";
  EXPECT_EQ(in_memory(kFirst), kLong);
  insert(kThird);
  EXPECT_FALSE(tier_.writing()) << "what had to go is on disk already";
}

TEST_F(DiskTierTest, WhatIsDroppedIsWhatMemoryHasNoMore) {
  insert(kFirst);
  tier_.rest();  // waits to be written, and the cache counts it
  for (std::uint64_t i = 10; i < 16; ++i) insert(test_prompt(kLong, i));
  EXPECT_GT(tier_.stats().dropped, 0u);
  EXPECT_EQ(in_memory(kFirst), kLong) << "the copying thread holds a lease";
  run_disk();
  EXPECT_TRUE(on_disk(kFirst));
}

TEST_F(DiskTierTest, RestingDoesNotWriteALittleMoreOfTheSame) {
  write(kFirst);
  const Tokens longer = with(kFirst, test_prompt(20, 9));
  insert(longer);
  tier_.rest();
  EXPECT_FALSE(tier_.writing());
  const Tokens much_longer = with(longer, test_prompt(60, 10));
  insert(much_longer);
  tier_.rest();
  run_disk();
  EXPECT_TRUE(on_disk(much_longer));
  EXPECT_FALSE(on_disk(kFirst)) << "the longer file serves all that it did";
}

TEST_F(DiskTierTest, TheEndWritesEverythingThatIsNotThere) {
  write(kFirst);
  insert(with(kFirst, test_prompt(20, 9)));
  insert(kSecond);
  tier_.flush();
  run_disk();
  EXPECT_TRUE(on_disk(with(kFirst, test_prompt(20, 9))));
  EXPECT_TRUE(on_disk(kSecond));
  EXPECT_EQ(disk_.files.size(), 2u);
}

TEST_F(DiskTierTest, ShortPromptsAreNotWorthAFile) {
  insert(test_prompt(20, 1));
  tier_.rest();
  tier_.flush();
  EXPECT_FALSE(tier_.writing());
}

TEST_F(DiskTierTest, ATenantWithoutALastingNameLeavesNothingBehind) {
  const PrefixKey nameless{4, 0};
  insert(kFirst, nameless);
  tier_.rest();
  tier_.flush();
  EXPECT_FALSE(tier_.writing());
  insert(kSecond, nameless);
  insert(kThird, nameless);
  EXPECT_FALSE(tier_.writing());
  EXPECT_EQ(read(kFirst, 0, kRowSeconds, nameless), 0u);
}

TEST_F(DiskTierTest, OneTenantDoesNotReadAnothersFile) {
  write(kFirst);
  const PrefixKey other{5, 0};
  tier_.name(other.tenant, 555);
  EXPECT_EQ(read(kFirst, 0, kRowSeconds, other), 0u);
  EXPECT_NE(read(kFirst), 0u);
}

TEST_F(DiskTierTest, ATenantIsFoundUnderItsLastingNameWhateverItsIdIsNow) {
  write(kFirst);
  const PrefixKey same{77, 0};
  tier_.name(same.tenant, kName.tenant);
  EXPECT_NE(read(kFirst, 0, kRowSeconds, same), 0u);
  run_disk();
  EXPECT_EQ(in_memory(kFirst, same), kLong);
}

TEST_F(DiskTierTest, AFileOfAnotherTenantIsRefused) {
  write(kFirst);
  const std::uint64_t file = disk_.files.begin()->first;
  disk_.files.begin()->second.key = {444, 0};
  const PrefixKey again{6, 0};
  tier_.name(again.tenant, kName.tenant);
  EXPECT_EQ(read(kFirst, 0, kRowSeconds, again), file);
  run_disk();
  EXPECT_EQ(in_memory(kFirst, again), 0);
  EXPECT_FALSE(disk_.files.contains(file));
}

TEST_F(DiskTierTest, NoRequestWaitsForWhatIsComputedSooner) {
  write(kFirst);
  EXPECT_EQ(read(kFirst, 0, 1e-6), 0u) << "a hundred tokens in a tenth of a millisecond";
  EXPECT_EQ(read(kFirst, kLong - 31), 0u) << "memory has nearly all of it";
  EXPECT_NE(read(kFirst, 0, 0), 0u) << "before anything is known, reading is right";
}

TEST_F(DiskTierTest, ASlowDiskIsLearned) {
  for (std::uint64_t i = 0; i < 12; ++i) write(test_prompt(kLong, i));
  disk_.took = seconds(1);
  int reads = 0;
  for (std::uint64_t i = 0; i < 10 && read(test_prompt(kLong, i)) != 0; ++i, ++reads) run_disk();
  EXPECT_GT(reads, 0);
  EXPECT_LT(reads, 10) << "a second for what takes a tenth of one to compute";
}

TEST_F(DiskTierTest, TwoWhoWantTheSameFileReadItOnce) {
  write(kFirst);
  disk_.done.clear();
  const std::uint64_t file = read(kFirst);
  EXPECT_EQ(read(with(kFirst, {1, 2, 3})), file);
  run_disk();
  EXPECT_EQ(disk_.done, std::vector<OrderKind>{OrderKind::read});
}

TEST_F(DiskTierTest, ARequestThatFindsTheDiskBusyAsksAgainWhenItIsLess) {
  const Tokens fourth = test_prompt(kLong, 4);
  for (const Tokens& tokens : {kFirst, kSecond, kThird, fourth}) write(tokens);
  EXPECT_TRUE(tier_.read(kDiskKey, kFirst, kLong, {0, kRowSeconds, 0}).own);
  EXPECT_TRUE(tier_.read(kDiskKey, kSecond, kLong, {0, kRowSeconds, 0}).own);
  const DiskTier::Wait third = tier_.read(kDiskKey, fourth, kLong, {0, kRowSeconds, 0});
  EXPECT_FALSE(third.own);
  EXPECT_TRUE(tier_.reading(third.file));
  run_disk();
  EXPECT_FALSE(tier_.reads());
  EXPECT_TRUE(tier_.read(kDiskKey, fourth, kLong, {0, kRowSeconds, 0}).own);
}

TEST_F(DiskTierTest, AFileThatCannotBeReadIsForgottenAndRemoved) {
  write(kFirst);
  disk_.reads_fail = true;
  ASSERT_NE(read(kFirst), 0u);
  run_disk();
  EXPECT_TRUE(disk_.files.empty());
  EXPECT_EQ(read(kFirst), 0u);
  EXPECT_LE(cache_.bytes(), 2 * kBytes);
}

TEST_F(DiskTierTest, AFileThatCannotBeWrittenIsForgotten) {
  disk_.writes_fail = true;
  write(kFirst);
  EXPECT_EQ(read(kFirst), 0u);
  EXPECT_EQ(tier_.stats().store.bytes, 0u);
  disk_.writes_fail = false;
  tier_.flush();
  run_disk();
  EXPECT_TRUE(on_disk(kFirst)) << "it is tried again";
}

TEST_F(DiskTierTest, NothingIsReadThatHasNoRoomInMemory) {
  const Tokens large = test_prompt(500, 8);
  tier_.found({.number = 1, .bytes = snapshot_file_bytes(500, 5000), .usable = true, .key = kName, .tokens = large});
  disk_.files[1] = {kName, large, disk_snapshot_of(large)};
  EXPECT_EQ(read(large), 0u);
}

TEST_F(DiskTierTest, WhatIsUsedInMemoryStaysOnDisk) {
  insert(kFirst);
  tier_.rest();
  run_disk();
  disk_.done.clear();
  tier_.used(kDiskKey, kFirst);
  run_disk();
  EXPECT_EQ(disk_.done, std::vector<OrderKind>{OrderKind::touch});
}

class SmallDiskTest : public DiskTierTest {
 protected:
  // Room for three files.
  SmallDiskTest() : DiskTierTest(6, {.bytes = 3 * snapshot_file_bytes(kLong, kBytes), .queue_bytes = 2000}) {}
};

TEST_F(SmallDiskTest, TheEndWritesWhatIsMostValuableAndFits) {
  for (std::uint64_t i = 0; i < 6; ++i) insert(test_prompt(kLong, i));
  for (const std::uint64_t used : {1, 3, 4}) {
    for (int i = 0; i < 3; ++i) cache_.touch(cache_.match(kDiskKey, test_prompt(kLong, used), kLong), now_);
  }
  tier_.flush();
  run_disk();
  EXPECT_EQ(disk_.files.size(), 3u);
  for (const std::uint64_t used : {1, 3, 4}) EXPECT_TRUE(on_disk(test_prompt(kLong, used))) << used;
}

TEST_F(SmallDiskTest, RemovalsComeBeforeTheWriteThatNeedsTheRoom) {
  for (std::uint64_t i = 0; i < 3; ++i) write(test_prompt(kLong, i));
  insert(test_prompt(kLong, 3));
  tier_.rest();
  disk_.done.clear();
  run_once();
  EXPECT_EQ(disk_.done, (std::vector<OrderKind>{OrderKind::remove, OrderKind::write}));
}

TEST_F(DiskTierTest, WhatIsForgottenOfATenantIsGoneWithAllItsAdapters) {
  const PrefixKey other{5, 0};
  tier_.name(other.tenant, 555);
  write(kFirst);
  insert(kFirst, {kDiskKey.tenant, 77});
  tier_.rest();
  run_disk();
  insert(kFirst, other);
  tier_.rest();
  run_disk();
  ASSERT_EQ(disk_.files.size(), 3u);
  EXPECT_EQ(tier_.forget(kName.tenant), 2u);
  run_disk();
  ASSERT_EQ(disk_.files.size(), 1u);
  EXPECT_EQ(disk_.files.begin()->second.key.tenant, 555u);
  EXPECT_EQ(read(kFirst), 0u);
  EXPECT_EQ(tier_.forget(kName.tenant), 0u);
}

TEST_F(DiskTierTest, WhatIsForgottenWhileItIsReadIsNotUsed) {
  write(kFirst);
  cache_.erase_tenant(kDiskKey.tenant);
  ASSERT_NE(read(kFirst), 0u);
  EXPECT_EQ(tier_.forget(kName.tenant), 1u);
  EXPECT_TRUE(tier_.consistent());
  run_disk();
  EXPECT_EQ(in_memory(kFirst), 0);
  EXPECT_TRUE(disk_.files.empty());
}

TEST_F(DiskTierTest, WhatIsForgottenWhileItIsWrittenDoesNotStay) {
  insert(kFirst);
  tier_.rest();
  std::vector<DiskOrder> orders;
  tier_.take_orders(orders);  // it is being written
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(tier_.forget(kName.tenant), 1u);
  for (DiskOutcome& outcome : disk_.carry_out(orders)) tier_.done(std::move(outcome), kRowSeconds, now_);
  run_disk();
  EXPECT_TRUE(disk_.files.empty());
}

TEST_F(DiskTierTest, WhatIsForgottenWhileItWaitsIsNotWritten) {
  insert(kFirst);
  insert(kSecond);
  insert(kThird);  // the first had to leave memory
  ASSERT_TRUE(tier_.writing());
  cache_.erase_tenant(kDiskKey.tenant);
  tier_.forget(kName.tenant);
  EXPECT_FALSE(tier_.writing());
  EXPECT_TRUE(tier_.consistent());
  run_disk();
  EXPECT_TRUE(disk_.files.empty());
}

}  // namespace
}  // namespace chasqui
