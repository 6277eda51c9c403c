// What is erased is acknowledged when all of it has gone, also what is being written or read meanwhile.
#include <gtest/gtest.h>

#include "sched/disk_tier.h"
#include "sched/fake_disk.h"

namespace chasqui {
namespace {

using OrderKind = DiskOrder::Kind;
using Orders = std::vector<DiskOrder>;

class DiskErase : public testing::Test {
 protected:
  DiskErase()
      : cache_({.bytes = 10'000, .hand_over = true}), tier_({.bytes = 100'000, .queue_bytes = 2000}, true, cache_) {
    tier_.name(kDiskKey.tenant, kDiskTenant);
    cache_.insert(kDiskKey, tokens_, std::make_shared<KvSnapshot>(tokens_.size() * 10, 100), seconds(1), {});
    tier_.rest();
  }

  Orders take() {
    Orders orders;
    tier_.take_orders(orders);
    return orders;
  }
  void carry_out(Orders orders) {
    for (DiskOutcome& outcome : disk_.carry_out(orders)) tier_.done(std::move(outcome), kRowSeconds, {});
    EXPECT_TRUE(tier_.consistent());
  }
  // What is done from now on.
  std::vector<OrderKind> run() {
    disk_.done.clear();
    for (Orders orders = take(); !orders.empty(); orders = take()) carry_out(std::move(orders));
    return disk_.done;
  }

  const std::vector<Token> tokens_ = std::vector<Token>(100, 7);
  PrefixCache cache_;
  DiskTier tier_;
  FakeDisk disk_;
};

TEST_F(DiskErase, WaitsForAFileThatIsBeingWritten) {
  Orders writing = take();
  EXPECT_EQ(tier_.forget(kDiskTenant, 9), 1u);
  EXPECT_TRUE(take().empty()) << "nothing is synced before the file is there and has gone";
  carry_out(std::move(writing));
  EXPECT_TRUE(tier_.erasing(9));
  EXPECT_EQ(run(), (std::vector<OrderKind>{OrderKind::remove, OrderKind::sync}));
  EXPECT_TRUE(disk_.files.empty());
  EXPECT_FALSE(tier_.erasing());
}

TEST_F(DiskErase, WaitsForAFileThatIsBeingRead) {
  run();
  cache_.erase_tenant(kDiskKey.tenant);
  ASSERT_NE(tier_.read(kDiskKey, tokens_, 100, {0, kRowSeconds, 0}).file, 0u);
  Orders reading = take();
  EXPECT_EQ(tier_.forget(kDiskTenant, 9), 1u);
  EXPECT_TRUE(take().empty());
  carry_out(std::move(reading));
  EXPECT_EQ(run(), (std::vector<OrderKind>{OrderKind::remove, OrderKind::sync}));
  EXPECT_TRUE(disk_.files.empty());
  EXPECT_FALSE(tier_.erasing());
}

TEST_F(DiskErase, SyncsAlsoWhatWasRemovedBefore) {
  run();
  EXPECT_EQ(tier_.forget(kDiskTenant), 1u);
  EXPECT_EQ(tier_.forget(kDiskTenant, 9), 0u);
  EXPECT_EQ(run(), (std::vector<OrderKind>{OrderKind::remove, OrderKind::sync}));
  EXPECT_EQ(tier_.forget(kDiskTenant, 10), 0u);
  EXPECT_EQ(run(), (std::vector<OrderKind>{OrderKind::sync}));
}

}  // namespace
}  // namespace chasqui
