// A disk that stops answering: requests go on without it, and what comes back in the end is as good as ever.
#include <algorithm>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "sched/disk_tier.h"
#include "sched/fake_disk.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;
using Orders = std::vector<DiskOrder>;

constexpr TokenCount kPrompt = 100;

// Three prompts on disk, and a cache for two.
class DiskLate : public testing::Test {
 protected:
  DiskLate() {
    tier_.name(kDiskKey.tenant, kDiskTenant);
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      cache_.insert(kDiskKey, prompts_[i], snapshot_of(i), seconds(1), now_);
      tier_.take_evicted();
      tier_.rest();
      run_disk();
    }
    EXPECT_EQ(disk_.files.size(), prompts_.size());
    cache_.erase_tenant(kDiskKey.tenant);
  }

  static KvSnapshotPtr snapshot_of(std::size_t prompt) {
    const auto kv = std::make_shared<KvSnapshot>(10 * kPrompt, kPrompt);
    for (std::byte& byte : kv->bytes()) byte = static_cast<std::byte>(prompt + 1);
    return kv;
  }
  Orders take() {
    Orders orders;
    tier_.take_orders(orders);
    return orders;
  }
  void carry_out(Orders orders) {
    for (DiskOutcome& outcome : disk_.carry_out(orders)) tier_.done(std::move(outcome), kRowSeconds, now_);
    EXPECT_TRUE(tier_.consistent() && cache_.consistent());
  }
  void run_disk() {
    for (Orders orders = take(); !orders.empty(); orders = take()) carry_out(std::move(orders));
  }
  std::uint64_t read(std::size_t prompt) {
    return tier_.read(kDiskKey, prompts_[prompt], kPrompt, {0, kRowSeconds, 0}).file;
  }
  // What memory has of it is its own.
  bool is_back(std::size_t prompt) const {
    const PrefixCache::Match match = cache_.match(kDiskKey, prompts_[prompt], kPrompt);
    return match.length == kPrompt && std::ranges::equal(match.snapshot->bytes(), snapshot_of(prompt)->bytes());
  }

  const std::vector<Tokens> prompts_ = {test_prompt(kPrompt, 1), test_prompt(kPrompt, 2), test_prompt(kPrompt, 3)};
  TimePoint now_{};
  PrefixCache cache_{{.bytes = 20 * kPrompt, .hand_over = true}};
  DiskTier tier_{{.bytes = 100'000, .queue_bytes = 2000}, true, cache_};
  FakeDisk disk_;
};

TEST_F(DiskLate, ReadsAreNotWaitedForAndNoneBegins) {
  tier_.look_at_reads(now_);
  const std::uint64_t first = read(0);
  const std::uint64_t second = read(1);
  ASSERT_TRUE(first != 0 && second != 0);
  Orders hanging = take();
  tier_.look_at_reads(now_ + milliseconds(4'999));
  EXPECT_TRUE(tier_.reading(first) && tier_.reading(second) && tier_.reads());
  EXPECT_NE(read(2), 0u) << "until one of them is done";
  tier_.look_at_reads(now_ + seconds(5));
  EXPECT_FALSE(tier_.reading(first) || tier_.reading(second) || tier_.reads());
  for (std::size_t i = 0; i < prompts_.size(); ++i) EXPECT_EQ(read(i), 0u);
  EXPECT_EQ(tier_.stats().late, 2u);
  EXPECT_EQ(cache_.bytes(), 20u * kPrompt) << "their room stays reserved: the reading thread may have taken it";
  EXPECT_TRUE(tier_.consistent() && cache_.consistent());

  disk_.took = seconds(700);
  carry_out(std::move(hanging));
  EXPECT_TRUE(is_back(0) && is_back(1));
  EXPECT_NE(read(2), 0u) << "the disk is well again, and no slower";
}

TEST_F(DiskLate, WhatIsErasedMeanwhileIsNotSeenAgain) {
  ASSERT_NE(read(0), 0u);
  Orders hanging = take();
  tier_.look_at_reads(now_ + seconds(5));
  tier_.forget(kDiskTenant, 9);
  EXPECT_TRUE(tier_.erasing(9));
  carry_out(std::move(hanging));
  EXPECT_EQ(cache_.stats().entries, 0u);
  run_disk();
  EXPECT_TRUE(disk_.files.empty());
  EXPECT_FALSE(tier_.erasing());
}

TEST_F(DiskLate, AnErrorThatComesLateRemovesTheFileAsAnyOther) {
  ASSERT_NE(read(0), 0u);
  Orders hanging = take();
  tier_.look_at_reads(now_ + seconds(5));
  disk_.reads_fail = true;
  carry_out(std::move(hanging));
  disk_.reads_fail = false;
  run_disk();
  EXPECT_EQ(disk_.files.size(), 2u);
  EXPECT_NE(read(1), 0u);
}

}  // namespace
}  // namespace chasqui
