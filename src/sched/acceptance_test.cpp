#include "sched/acceptance.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(Acceptance, BeginsWithWhatIsExpectedAndFollowsWhatIsSeen) {
  Acceptance often(0.5);
  EXPECT_DOUBLE_EQ(often.chance(), 0.5);
  for (int i = 0; i < 20; ++i) often.observe(4, true);
  EXPECT_NEAR(often.chance(), 0.8, 0.02);
  Acceptance never(0.5);
  for (int i = 0; i < 60; ++i) never.observe(0, true);
  EXPECT_LT(never.chance(), 0.01);
}

TEST(Acceptance, WhatWasLongAgoIsForgotten) {
  Acceptance acceptance(0.5);
  for (int i = 0; i < 1000; ++i) acceptance.observe(1, false);
  for (int i = 0; i < 40; ++i) acceptance.observe(0, true);
  EXPECT_LT(acceptance.chance(), 0.2);
}

TEST(Acceptance, ExpectsAsManyAsAreRightInARow) {
  const Acceptance half(0.5);
  EXPECT_DOUBLE_EQ(half.expected(0), 0);
  EXPECT_DOUBLE_EQ(half.expected(3), 0.5 + 0.25 + 0.125);
  const Acceptance sure(1.0);
  EXPECT_DOUBLE_EQ(sure.expected(5), 5);
}

}  // namespace
}  // namespace chasqui
