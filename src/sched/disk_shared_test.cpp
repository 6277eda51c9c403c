// What nodes share, in the disk tier: when it is read, and what happens when the store does not answer.
#include <algorithm>

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "core/fake_tokens.h"
#include "sched/disk_tier.h"
#include "sched/fake_disk.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;
using Orders = std::vector<DiskOrder>;

constexpr TokenCount kShared = 100;  // tokens of a prompt; ten bytes each
constexpr std::uint64_t kFirstShared = kSharedFiles + 1;

class DiskShared : public testing::Test {
 protected:
  DiskShared() {
    tier_.name(kDiskKey.tenant, kDiskTenant);
    tier_.look_at_reads(now_);
  }

  // Another node has put it there.
  void found(std::uint64_t file, const Tokens& tokens, std::uint64_t tenant = kDiskTenant) {
    const LastingKey key{tenant, 0};
    const KvSnapshotPtr kv = disk_snapshot_of(tokens);
    disk_.files.insert_or_assign(file, FakeDisk::File{key, tokens, kv});
    tier_.done({.kind = DiskOrder::Kind::found,
                .file = file,
                .key = key,
                .tokens = tokens,
                .bytes = snapshot_file_bytes(tokens.size(), kv->size())},
               kRowSeconds, now_);
    EXPECT_TRUE(tier_.consistent());
  }
  void gone(std::uint64_t file) {
    disk_.files.erase(file);
    tier_.done({.kind = DiskOrder::Kind::gone, .file = file}, kRowSeconds, now_);
    EXPECT_TRUE(tier_.consistent());
  }
  // To the folder.
  void write(const Tokens& tokens) {
    cache_.insert(kDiskKey, tokens, disk_snapshot_of(tokens), milliseconds(tokens.size()), now_);
    tier_.take_evicted();
    tier_.rest();
    run_disk();
    cache_.erase_tenant(kDiskKey.tenant);
  }
  std::uint64_t read(const Tokens& tokens, TokenCount known = 0, double row_seconds = kRowSeconds) {
    return tier_.read(kDiskKey, tokens, static_cast<TokenCount>(tokens.size()), {known, row_seconds, 0}).file;
  }
  Orders take() {
    Orders orders;
    tier_.take_orders(orders);
    return orders;
  }
  void run_disk() {
    for (Orders orders = take(); !orders.empty(); orders = take()) {
      for (DiskOutcome& outcome : disk_.carry_out(orders)) tier_.done(std::move(outcome), kRowSeconds, now_);
      EXPECT_TRUE(tier_.consistent() && cache_.consistent());
    }
  }
  // The store answers what was ordered so.
  void refuse(ErrorCode code, Duration took = {}) {
    for (DiskOrder& order : take()) {
      if (order.kind != DiskOrder::Kind::read) continue;
      DiskOutcome outcome{.kind = order.kind, .file = order.file, .error = Error{code, "", ""}, .took = took};
      tier_.done(std::move(outcome), kRowSeconds, now_);
    }
    EXPECT_TRUE(tier_.consistent() && cache_.consistent());
  }
  void after(Duration time) { tier_.look_at_reads(now_ += time); }
  TokenCount in_memory(const Tokens& tokens) const { return cache_.match(kDiskKey, tokens, INT32_MAX).length; }

  const Tokens first_ = test_prompt(kShared, 1);
  const Tokens second_ = test_prompt(kShared, 2);
  TimePoint now_{};
  PrefixCache cache_{{.bytes = 100 * kShared, .hand_over = true}};
  DiskTier tier_{{.bytes = 100'000, .queue_bytes = 2000, .ahead = false}, true, cache_};
  FakeDisk disk_;
};

TEST_F(DiskShared, WhatAnotherNodeHasComputedIsRead) {
  found(kFirstShared, first_);
  EXPECT_EQ(read(first_), kFirstShared);
  run_disk();
  EXPECT_EQ(in_memory(first_), kShared);
  EXPECT_EQ(read(second_), 0u);
  EXPECT_EQ(tier_.stats().store.files, 0u) << "it is in no folder";
}

TEST_F(DiskShared, ACopyInTheFolderComesFirst) {
  write(first_);
  found(kFirstShared, first_);
  const std::uint64_t file = read(first_);
  EXPECT_TRUE(file != 0 && !is_shared_file(file));
}

TEST_F(DiskShared, WhatSavesMoreComesFirst) {
  write(first_);
  const Tokens longer = with(first_, test_prompt(300, 9));
  found(kFirstShared, longer);
  EXPECT_EQ(read(longer), kFirstShared);
  EXPECT_FALSE(is_shared_file(read(with(first_, test_prompt(300, 8))))) << "both have the same of it";
}

TEST_F(DiskShared, WhatIsReadIsWrittenToTheFolderToo) {
  found(kFirstShared, first_);
  ASSERT_EQ(read(first_), kFirstShared);
  run_disk();
  tier_.rest();
  run_disk();
  EXPECT_EQ(tier_.stats().store.files, 1u);
}

TEST_F(DiskShared, WhatIsComputedSoonerIsNotReadOverTheNetwork) {
  found(kFirstShared, first_);
  EXPECT_EQ(read(first_, 0, 0.0001), 0u) << "a hundred tokens in ten milliseconds";
  EXPECT_NE(read(first_), 0u);
}

TEST_F(DiskShared, ASlowStoreIsNoSlowDisk) {
  disk_.took = seconds(1);
  for (std::uint64_t i = 0; i < 10; ++i) {
    const Tokens prompt = test_prompt(kShared, 100 + i);
    found(kFirstShared + i, prompt);
    read(prompt);
    run_disk();
  }
  const Tokens last = test_prompt(kShared, 200);
  found(kFirstShared + 20, last);
  EXPECT_EQ(read(last), 0u) << "learned: a second for what takes a tenth of one";
  disk_.took = {};
  write(first_);
  EXPECT_NE(read(first_), 0u);
}

TEST_F(DiskShared, AStoreThatHangsHoldsNoReadOfTheFolder) {
  write(second_);
  found(kFirstShared, first_);
  found(kFirstShared + 1, test_prompt(kShared, 3));
  ASSERT_EQ(read(first_), kFirstShared);
  const Orders hanging = take();
  after(seconds(2));
  EXPECT_FALSE(tier_.reads());
  EXPECT_EQ(read(first_), 0u);
  EXPECT_EQ(read(test_prompt(kShared, 3)), 0u) << "it would hang, too";
  const std::uint64_t own = read(second_);
  EXPECT_TRUE(own != 0 && !is_shared_file(own));
  run_disk();
  EXPECT_EQ(in_memory(second_), kShared);
  Orders late = hanging;
  for (DiskOutcome& outcome : disk_.carry_out(late)) tier_.done(std::move(outcome), kRowSeconds, now_);
  EXPECT_EQ(in_memory(first_), kShared) << "as good as ever";
}

TEST_F(DiskShared, AStoreThatDoesNotAnswerRestsAndForgetsNothing) {
  found(kFirstShared, first_);
  found(kFirstShared + 1, second_);
  ASSERT_EQ(read(first_), kFirstShared);
  refuse(ErrorCode::unavailable);
  EXPECT_EQ(read(first_), 0u);
  EXPECT_EQ(read(second_), 0u) << "no request waits for a store that is down";
  after(seconds(29));
  EXPECT_EQ(read(first_), 0u);
  after(seconds(1));
  EXPECT_EQ(read(first_), kFirstShared);
  run_disk();
  EXPECT_EQ(in_memory(first_), kShared);
}

TEST_F(DiskShared, WhatIsNotThereOrDamagedIsForgotten) {
  for (const ErrorCode code : {ErrorCode::not_found, ErrorCode::invalid_request, ErrorCode::too_large}) {
    found(kFirstShared, first_);
    ASSERT_EQ(read(first_), kFirstShared);
    refuse(code);
    EXPECT_EQ(read(first_), 0u);
    EXPECT_EQ(tier_.stats().store.shared, 0u);
  }
}

TEST_F(DiskShared, WhatGoesWhileItIsReadSaysSoItself) {
  found(kFirstShared, first_);
  gone(kFirstShared);
  EXPECT_EQ(read(first_), 0u);
  gone(kFirstShared);  // twice
  found(kFirstShared, first_);
  ASSERT_EQ(read(first_), kFirstShared);
  const Orders order = take();
  ASSERT_EQ(order.size(), 1u + 1u) << "what was forgotten before is told, too";
  gone(kFirstShared);
  EXPECT_TRUE(tier_.reading(kFirstShared));
  DiskOutcome missing{
      .kind = DiskOrder::Kind::read, .file = kFirstShared, .error = Error{ErrorCode::not_found, "", ""}};
  tier_.done(std::move(missing), kRowSeconds, now_);
  EXPECT_EQ(tier_.stats().store.shared, 0u);
}

TEST_F(DiskShared, AnotherTenantsIsNotUsedWhateverTheStoreSays) {
  found(kFirstShared, first_, 444);
  EXPECT_EQ(read(first_), 0u);
  found(kFirstShared + 1, second_);
  disk_.files.at(kFirstShared + 1).key.tenant = 444;
  ASSERT_EQ(read(second_), kFirstShared + 1);
  run_disk();
  EXPECT_EQ(in_memory(second_), 0);
}

TEST_F(DiskShared, WhatIsErasedIsNotReadAgain) {
  found(kFirstShared, first_);
  found(kFirstShared + 1, second_);
  ASSERT_EQ(read(second_), kFirstShared + 1);
  const Orders reading = take();
  EXPECT_EQ(tier_.forget(kDiskTenant, 1), 0u) << "nothing of it is on disk";
  Orders orders = take();
  EXPECT_EQ(orders.back().kind, DiskOrder::Kind::sync) << "a read from the store holds no erase";
  for (DiskOutcome& outcome : disk_.carry_out(orders)) tier_.done(std::move(outcome), kRowSeconds, now_);
  EXPECT_EQ(read(first_), 0u);
  Orders late = reading;
  for (DiskOutcome& outcome : disk_.carry_out(late)) tier_.done(std::move(outcome), kRowSeconds, now_);
  run_disk();
  EXPECT_EQ(in_memory(second_), 0);
  EXPECT_FALSE(tier_.erasing());
}

TEST_F(DiskShared, WhatTheModelDoesNotTakeIsForgotten) {
  found(kFirstShared, first_);
  tier_.refused(kDiskKey, first_);
  EXPECT_EQ(read(first_), 0u);
  EXPECT_EQ(tier_.stats().refused, 1u);
}

}  // namespace
}  // namespace chasqui
