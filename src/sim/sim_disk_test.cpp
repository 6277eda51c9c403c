#include "sim/sim_disk.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr TimePoint kStart = TimePoint{} + seconds(100);

KvSnapshotPtr snapshot_of(TokenCount tokens, std::byte content) {
  const auto snapshot = KvSnapshot::with_room(static_cast<std::size_t>(tokens) * 4, tokens, 32);
  for (std::size_t i = 0; i < snapshot->blocks().size(); ++i) std::ranges::fill(snapshot->writable(i), content);
  return snapshot;
}

TEST(SimDisk, GivesBackWhatWasWrittenAfterTheTimeOfItsBytes) {
  SimDisk disk({.seek = milliseconds(1), .byte_us = 10}, 1);
  std::vector<DiskOrder> orders(2);
  orders[0].kind = DiskOrder::Kind::write;
  orders[0].file = orders[1].file = 7;
  orders[0].key = {3, 4};
  orders[0].tokens = {5, 6};
  orders[0].kv = snapshot_of(100, std::byte{9});
  orders[1].kind = DiskOrder::Kind::read;
  const std::vector<TimePoint> ends = disk.order(orders, kStart);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0], kStart + milliseconds(5));
  EXPECT_EQ(ends[1], kStart + milliseconds(10)) << "one after the other";
  EXPECT_TRUE(orders.empty());
  EXPECT_EQ(disk.finish().kind, DiskOrder::Kind::write);
  const DiskOutcome read = disk.finish();
  EXPECT_EQ(read.tokens, (std::vector<Token>{5, 6}));
  EXPECT_EQ(read.key, (LastingKey{3, 4}));
  EXPECT_EQ(read.kv->size(), 400u);
  EXPECT_EQ(read.kv->blocks().size(), 4u);
  EXPECT_EQ(read.kv->blocks()[3]->bytes()[0], std::byte{9});
  EXPECT_EQ(disk.reads(), 1u);
  EXPECT_EQ(disk.under_way(), 0u);
}

TEST(SimDisk, FailsAsOftenAsItIsToldTo) {
  SimDisk disk({.failed = 1}, 1);
  std::vector<DiskOrder> orders(1);
  orders[0].kind = DiskOrder::Kind::write;
  orders[0].file = 1;
  orders[0].kv = snapshot_of(10, std::byte{1});
  disk.order(orders, kStart);
  const DiskOutcome outcome = disk.finish();
  EXPECT_TRUE(outcome.error);
  EXPECT_EQ(outcome.kv->tokens(), 10) << "the lease comes back";
}

}  // namespace
}  // namespace chasqui
