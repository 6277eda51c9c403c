// What leaves memory next is on disk before, so that several may leave at once.
#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "sched/disk_tier.h"
#include "sched/fake_disk.h"

namespace chasqui {
namespace {

constexpr TokenCount kShort = 100;
constexpr std::size_t kShortBytes = 10 * kShort;

// A cache for eight prompts, and a queue for two.
class DiskAhead : public testing::Test {
 protected:
  explicit DiskAhead(bool ahead = true, std::uint64_t disk_bytes = 100'000)
      : tier_({.bytes = disk_bytes, .queue_bytes = 2 * kShortBytes, .ahead = ahead}, true, cache_) {
    tier_.name(kDiskKey.tenant, kDiskTenant);
  }

  void insert(TokenCount length, std::uint64_t seed) {
    now_ += seconds(1);
    const std::vector<Token> tokens = test_prompt(length, seed);
    cache_.insert(kDiskKey, tokens, disk_snapshot_of(tokens), milliseconds(length), now_);
    tier_.take_evicted();
    EXPECT_TRUE(tier_.consistent() && cache_.consistent());
  }
  void run_disk() {
    for (std::vector<DiskOrder> orders;; orders.clear()) {
      tier_.take_orders(orders);
      if (orders.empty()) return;
      for (DiskOutcome& outcome : disk_.carry_out(orders)) tier_.done(std::move(outcome), kRowSeconds, now_);
    }
  }
  bool on_disk(std::uint64_t seed) const {
    return std::ranges::any_of(disk_.files,
                               [&](const auto& file) { return file.second.tokens == test_prompt(kShort, seed); });
  }

  TimePoint now_{};
  PrefixCache cache_{{.bytes = 8 * kShortBytes, .hand_over = true}};
  DiskTier tier_;
  FakeDisk disk_;
};

class NotAhead : public DiskAhead {
 protected:
  NotAhead() : DiskAhead(false) {}
};

TEST_F(DiskAhead, IsNotWrittenWhereThereIsRoom) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) insert(kShort, seed);
  run_disk();
  EXPECT_TRUE(disk_.files.empty());
}

TEST_F(DiskAhead, IsWhatLeavesNext) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) insert(kShort, seed);
  run_disk();
  EXPECT_EQ(disk_.files.size(), 2u) << "as much as the queue holds";
  EXPECT_TRUE(on_disk(1) && on_disk(2));
  EXPECT_EQ(cache_.stats().entries, 8u);
}

TEST_F(DiskAhead, LosesNothingWhereFourLeaveAtOnce) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) insert(kShort, seed);
  run_disk();
  insert(4 * kShort, 9);
  run_disk();
  EXPECT_EQ(tier_.stats().dropped, 0u);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) EXPECT_TRUE(on_disk(seed)) << seed;
}

TEST_F(NotAhead, LosesTwoOfThem) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) insert(kShort, seed);
  run_disk();
  insert(4 * kShort, 9);
  run_disk();
  EXPECT_EQ(tier_.stats().dropped, 2u);
}

class DiskAheadFull : public DiskAhead {
 protected:
  DiskAheadFull() : DiskAhead(true, 2 * snapshot_file_bytes(kShort, kShortBytes)) {}
};

// What is least valuable would drive out what is most.
TEST_F(DiskAheadFull, IsNotWrittenAtTheEnd) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) insert(kShort, seed);
  tier_.flush();
  run_disk();
  tier_.rest();
  run_disk();
  EXPECT_TRUE(on_disk(7) && on_disk(8));
  EXPECT_EQ(disk_.files.size(), 2u);
}

// One that is being written cannot leave; a large one could be all that can.
TEST_F(DiskAhead, IsNothingThatIsLargerThanTheQueue) {
  insert(3 * kShort, 1);
  for (std::uint64_t seed = 2; seed <= 6; ++seed) insert(kShort, seed);
  run_disk();
  EXPECT_EQ(disk_.files.size(), 2u);
  EXPECT_TRUE(on_disk(2) && on_disk(3));
}

TEST_F(DiskAhead, IsTriedAgainAtItsEndWhenItCouldNotBeWritten) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) insert(kShort, seed);
  disk_.writes_fail = true;
  run_disk();
  EXPECT_TRUE(disk_.files.empty());
  disk_.writes_fail = false;
  insert(kShort, 9);
  run_disk();
  EXPECT_TRUE(on_disk(1));
}

}  // namespace
}  // namespace chasqui
