#include "base/clock.h"

#include <gtest/gtest.h>

#include "base/thread_time.h"

namespace chasqui {
namespace {

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const TimePoint start = clock.now();
  EXPECT_EQ(clock.now(), start);
  clock.advance(milliseconds(5));
  EXPECT_EQ(clock.now() - start, milliseconds(5));
  EXPECT_DOUBLE_EQ(to_milliseconds(clock.now() - start), 5.0);
  EXPECT_DOUBLE_EQ(to_seconds(clock.now() - start), 0.005);
}

TEST(RealClock, NeverRunsBackwardsAndKnowsTheYear) {
  const RealClock clock;
  const TimePoint first = clock.now();
  EXPECT_LE(first, clock.now());
  EXPECT_LT(first, kNever);
  EXPECT_GT(clock.unix_seconds(), 1'700'000'000);
}

TEST(ThreadTime, GrowsWithWork) {
  const Duration before = thread_time();
  volatile std::uint64_t work = 0;
  while (thread_time() == before) work = work + 1;
  EXPECT_GT(thread_time(), before);
}

}  // namespace
}  // namespace chasqui
