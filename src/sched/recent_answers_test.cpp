#include "sched/recent_answers.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(RecentAnswers, UntilOneHasEndedAClientsLimitIsWhatItGets) {
  const RecentAnswers answers;
  EXPECT_EQ(answers.slot_seconds(), 0);
  EXPECT_EQ(answers.left(10, 90, true), 90);
  EXPECT_EQ(answers.left(10, 90, false), 10) << "as long again";
  EXPECT_EQ(answers.left(10, 5, false), 5);
}

TEST(RecentAnswers, WhatHasSaidMoreThanOthersGoesOnForAsLongAgain) {
  RecentAnswers answers;
  for (const TokenCount tokens : {10, 20, 30}) answers.ended(tokens, false, false, seconds(1));
  EXPECT_DOUBLE_EQ(answers.left(0, 1000, false), 20);
  EXPECT_DOUBLE_EQ(answers.left(15, 1000, false), 10) << "of those that were longer";
  EXPECT_DOUBLE_EQ(answers.left(29, 1000, false), 1);
  EXPECT_DOUBLE_EQ(answers.left(30, 1000, false), 30);
}

TEST(RecentAnswers, LimitsCountAsOftenAsTheyEndAnswers) {
  RecentAnswers answers;
  answers.ended(100, true, true, seconds(1));
  EXPECT_DOUBLE_EQ(answers.left(0, 500, true), 500);
  RecentAnswers stops;
  stops.ended(100, true, false, seconds(1));
  EXPECT_DOUBLE_EQ(stops.left(0, 500, true), 100);
  EXPECT_DOUBLE_EQ(stops.left(0, 40, true), 40);
}

TEST(RecentAnswers, ForgetsTheOldest) {
  RecentAnswers answers;
  for (int i = 0; i < 64; ++i) answers.ended(1000, false, false, seconds(10));
  for (int i = 0; i < 64; ++i) answers.ended(10, false, false, seconds(1));
  EXPECT_DOUBLE_EQ(answers.left(0, 5000, false), 10);
  EXPECT_NEAR(answers.slot_seconds(), 1, 0.02);
}

}  // namespace
}  // namespace chasqui
