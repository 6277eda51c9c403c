#include "sched/step_cut.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

class StepCutTest : public ::testing::Test {
 protected:
  StepCutTest() { batch_.cut_by = 1; }

  void ended(DecodeStatus status, Duration took, int times = 1) {
    result_.status = status;
    result_.compute = took;
    for (int i = 0; i < times; ++i) cut_.ended(batch_, result_);
  }

  Batch batch_;
  BatchResult result_;
  StepCut cut_;
};

TEST_F(StepCutTest, TheFirstCutIsFree) {
  EXPECT_TRUE(cut_.affords(seconds(60)));
  ended(DecodeStatus::aborted, seconds(30));
  EXPECT_FALSE(cut_.affords(milliseconds(10)));
}

TEST_F(StepCutTest, NoMoreThanAPartOfTheTimeIsLost) {
  Duration useful{};
  Duration lost{};
  for (int i = 0; i < 1000; ++i) {
    const bool cut = cut_.affords(milliseconds(200));  // an arrival at every step, half through it
    ended(cut ? DecodeStatus::aborted : DecodeStatus::ok, milliseconds(cut ? 100 : 200));
    (cut ? lost : useful) += milliseconds(cut ? 100 : 200);
  }
  EXPECT_GT(lost, Duration::zero());
  EXPECT_LE(lost, useful / 7);
}

TEST_F(StepCutTest, ALongQuietTimePaysForAFewCutsOnly) {
  ended(DecodeStatus::aborted, milliseconds(1));
  ended(DecodeStatus::ok, milliseconds(200), 10'000);
  int cuts = 0;
  for (; cut_.affords(milliseconds(200)); ++cuts) ended(DecodeStatus::aborted, milliseconds(100));
  EXPECT_EQ(cuts, 4);
}

TEST_F(StepCutTest, StepsThatNoArrivalMayCutCountNothing) {
  batch_.cut_by = Batch::kUncut;
  ended(DecodeStatus::aborted, seconds(1));
  EXPECT_TRUE(cut_.affords(milliseconds(200))) << "it was cut because its client left";
}

}  // namespace
}  // namespace chasqui
