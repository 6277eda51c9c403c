#include "sched/width_trials.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

// One row is known to be best, and four may be better.
constexpr WidthChoice kHopes{
    .best = {.width = 1, .rate = 100}, .hoped = {.width = 4, .rate = 200}, .hopes = true, .reachable = 8};

TEST(WidthTrials, TryWhatIsHopedForInTwoSteps) {
  WidthTrials trials;
  for (int step = 0; step < 2; ++step) {
    const auto [width, trial] = trials.next(kHopes, false);
    EXPECT_EQ(width, 4);
    EXPECT_TRUE(trial);
    trials.spend(0.3, 0.3);
  }
  const auto [width, trial] = trials.next(kHopes, false);
  EXPECT_EQ(width, 1) << "the trial has cost what there was";
  EXPECT_FALSE(trial);
}

TEST(WidthTrials, TryNothingWhereNothingIsHopedFor) {
  WidthTrials trials;
  WidthChoice choice = kHopes;
  choice.hopes = false;
  EXPECT_FALSE(trials.next(choice, false).trial);
}

TEST(WidthTrials, EndWhereTheWidthIsOutOfReach) {
  WidthTrials trials;
  EXPECT_TRUE(trials.next(kHopes, false).trial);
  WidthChoice narrow = kHopes;
  narrow.reachable = 3;
  EXPECT_EQ(trials.next(narrow, false).width, 1);
}

TEST(WidthTrials, WaitUntilHeadsHaveLearned) {
  WidthTrials trials;
  EXPECT_FALSE(trials.next(kHopes, true).trial);
  EXPECT_TRUE(trials.prepares());
  trials.spend(1, 1);
  EXPECT_FALSE(trials.next(kHopes, true).trial);
  EXPECT_TRUE(trials.prepares()) << "what they learned is paid for";
  EXPECT_TRUE(trials.next(kHopes, false).trial);
  EXPECT_FALSE(trials.prepares());
}

TEST(WidthTrials, HeadsLearnForNoTrialWhoseHopeIsGone) {
  WidthTrials trials;
  trials.next(kHopes, true);
  WidthChoice choice = kHopes;
  choice.hopes = false;
  trials.next(choice, true);
  EXPECT_FALSE(trials.prepares());
}

}  // namespace
}  // namespace chasqui
