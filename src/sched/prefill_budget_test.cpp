#include "sched/prefill_budget.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

// A model whose prefill step takes a fixed time and a time for each row.
struct Cost {
  Duration step;
  Duration row;
  Duration of(TokenCount rows) const { return step + row * rows; }
};

// The chunk that the budget settles on.
TokenCount settle(PrefillBudget& budget, Cost cost, int steps = 100) {
  for (int i = 0; i < steps; ++i) {
    const TokenCount rows = budget.rows(true);
    budget.observe(rows, cost.of(rows));
  }
  return budget.rows(true);
}

TEST(PrefillBudget, FillsTheBatchWhileNobodyWaits) {
  PrefillBudget budget(milliseconds(100), 512);
  EXPECT_EQ(budget.rows(false), 512);
  budget.observe(512, seconds(10));
  EXPECT_EQ(budget.rows(false), 512);
}

TEST(PrefillBudget, StartsCarefully) {
  EXPECT_EQ(PrefillBudget(milliseconds(100), 512).rows(true), 64);
  EXPECT_EQ(PrefillBudget(milliseconds(100), 20).rows(true), 20);
}

TEST(PrefillBudget, FindsTheRowsThatFitTheTarget) {
  PrefillBudget budget(milliseconds(100), 512);
  EXPECT_EQ(settle(budget, {Duration::zero(), milliseconds(1)}), 100);
  EXPECT_NEAR(settle(budget, {Duration::zero(), milliseconds(2)}), 50, 1);
  EXPECT_NEAR(settle(budget, {Duration::zero(), microseconds(500)}), 200, 1) << "and grows again";
}

TEST(PrefillBudget, SettlesOnTheTargetWithAFixedCostTooFromBothSides) {
  const Cost cost{milliseconds(20), milliseconds(1)};
  PrefillBudget fresh(milliseconds(100), 512);
  EXPECT_NEAR(settle(fresh, cost), 80, 2);
  PrefillBudget slow(milliseconds(100), 512);
  slow.observe(16, seconds(10));
  EXPECT_NEAR(settle(slow, cost), 80, 2) << "one slow step is not for ever";
}

TEST(PrefillBudget, StaysBetweenSixteenRowsAndTheBatch) {
  PrefillBudget budget(milliseconds(100), 512);
  EXPECT_EQ(settle(budget, {Duration::zero(), seconds(1)}), 16);
  EXPECT_EQ(settle(budget, {Duration::zero(), Duration(1)}), 512);
  PrefillBudget small(milliseconds(100), 8);
  EXPECT_EQ(settle(small, {Duration::zero(), seconds(1)}), 8);
}

TEST(PrefillBudget, ATargetOfNothingStillMakesProgress) {
  PrefillBudget budget(Duration::zero(), 512);
  EXPECT_EQ(settle(budget, {Duration::zero(), milliseconds(1)}), 16);
}

TEST(PrefillBudget, OneOutlierMovesItOnlyALittle) {
  PrefillBudget budget(milliseconds(100), 512);
  settle(budget, {Duration::zero(), milliseconds(1)});
  budget.observe(100, milliseconds(200));
  EXPECT_GT(budget.rows(true), 70);
  EXPECT_LT(budget.rows(true), 100);
}

TEST(PrefillBudget, LearnsNothingFromTinyOrTimelessSteps) {
  PrefillBudget budget(milliseconds(100), 512);
  budget.observe(15, seconds(5));
  budget.observe(100, Duration::zero());
  EXPECT_EQ(budget.rows(true), 64);
}

}  // namespace
}  // namespace chasqui
