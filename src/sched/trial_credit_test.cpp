#include "sched/trial_credit.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(TrialCredit, ThereIsSomeAtFirst) { EXPECT_TRUE(TrialCredit().enough()); }

TEST(TrialCredit, OnceSpentItComesBackAsAShareOfAllTime) {
  TrialCredit credit;
  credit.spend(1.25, 1.25);
  EXPECT_FALSE(credit.enough());
  int steps = 0;
  while (!credit.enough()) {
    credit.spend(1, 0);
    ++steps;
  }
  EXPECT_NEAR(steps, 100, 2) << "a second that was lost is followed by a hundred";
}

TEST(TrialCredit, AQuietHourBuysNoMoreThanTheBeginning) {
  TrialCredit credit;
  for (int i = 0; i < 3600; ++i) credit.spend(1, 0);
  credit.spend(0, 0.3);
  EXPECT_FALSE(credit.enough());
}

}  // namespace
}  // namespace chasqui
