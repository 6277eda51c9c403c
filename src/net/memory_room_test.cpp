#include "net/memory_room.h"

#include <vector>

#include <gtest/gtest.h>

namespace chasqui::net {
namespace {

constexpr TimePoint kNow{seconds(100)};
constexpr Duration kFresh = seconds(1);

MemoryHolding holding(std::uint32_t user, std::size_t bytes, Duration age) { return {user, bytes, kNow - age}; }

TEST(MemoryRoom, GivesUpWhatHasHeldMostForLongest) {
  const std::vector<MemoryHolding> all = {holding(1, 4000, seconds(9)), holding(1, 8000, milliseconds(1500)),
                                         holding(1, 10, seconds(20)), holding(1, 5000, seconds(9))};
  EXPECT_EQ(costliest(all, kFresh, kNow), 3u);
}

TEST(MemoryRoom, GivesUpNoneThatIsFresh) {
  const std::vector<MemoryHolding> all = {holding(1, 4000, milliseconds(900)), holding(1, 8000, milliseconds(10))};
  EXPECT_EQ(costliest(all, kFresh, kNow), std::nullopt);
  EXPECT_EQ(costliest({}, kFresh, kNow), std::nullopt);
}

TEST(MemoryRoom, TakesOnlyFromTheUserWhoHoldsMost) {
  std::vector<MemoryHolding> all = {holding(1, 3000, seconds(20)), holding(2, 2000, seconds(2)),
                                   holding(2, 2000, seconds(3))};
  EXPECT_EQ(costliest(all, kFresh, kNow), 2u);
  all[1].since = all[2].since = kNow;
  EXPECT_EQ(costliest(all, kFresh, kNow), std::nullopt) << "the other user has to wait, and loses nothing";
}

TEST(MemoryRoom, TakesClientsWhomTheKernelDoesNotNameForOneUser) {
  const std::vector<MemoryHolding> all = {
      {std::nullopt, 3000, kNow - seconds(2)}, {std::nullopt, 3000, kNow - seconds(3)}, holding(0, 4000, seconds(9))};
  EXPECT_EQ(costliest(all, kFresh, kNow), 1u);
}

}  // namespace
}  // namespace chasqui::net
