#include "engine/step_cut.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

class StepCutTest : public ::testing::Test {
 protected:
  StepCutTest() {
    background_.service_class = ServiceClass::background;
    standard_.service_class = ServiceClass::standard;
    batch_.kind = Batch::Kind::prefill;
    batch_.predicted = milliseconds(200);
    batch_.parts = {part(background_), part(background_)};
  }

  static BatchPart part(const Request& request) {
    BatchPart out;
    out.request = &request;
    return out;
  }
  void ended(DecodeStatus status, Duration took, int times = 1) {
    result_.status = status;
    result_.compute = took;
    for (int i = 0; i < times; ++i) cut_.ended(batch_, result_);
  }

  Request background_;
  Request standard_;
  Batch batch_;
  BatchResult result_;
  StepCut cut_;
};

TEST_F(StepCutTest, BackgroundPromptsMakeWayOnceTheyHaveGotSomewhere) {
  EXPECT_FALSE(cut_.allows(batch_)) << "nothing was computed yet that a part could be lost of";
  ended(DecodeStatus::ok, milliseconds(200), 4);
  EXPECT_TRUE(cut_.allows(batch_));
}

TEST_F(StepCutTest, NoMoreThanAPartOfTheirTimeIsLost) {
  Duration useful{};
  Duration lost{};
  for (int i = 0; i < 1000; ++i) {
    const bool cut = cut_.allows(batch_);  // somebody always comes
    ended(cut ? DecodeStatus::aborted : DecodeStatus::ok, milliseconds(200));
    (cut ? lost : useful) += milliseconds(200);
  }
  EXPECT_GT(lost, Duration::zero());
  EXPECT_LE(lost, useful / 2);
}

TEST_F(StepCutTest, WhatIsNotSavedUpIsNotSpentLater) {
  ended(DecodeStatus::ok, milliseconds(200), 10'000);
  int cuts = 0;
  while (cut_.allows(batch_)) {
    ended(DecodeStatus::aborted, milliseconds(200));
    ++cuts;
  }
  EXPECT_LE(cuts, 10) << "two seconds";
}

TEST_F(StepCutTest, NothingElseMakesWay) {
  ended(DecodeStatus::ok, milliseconds(200), 100);
  batch_.predicted = milliseconds(20);
  EXPECT_FALSE(cut_.allows(batch_)) << "over in a moment";
  batch_.predicted = milliseconds(200);
  batch_.parts.push_back(part(standard_));
  EXPECT_FALSE(cut_.allows(batch_)) << "somebody's who is not in the background";
  batch_.parts.pop_back();
  batch_.kind = Batch::Kind::decode;
  EXPECT_FALSE(cut_.allows(batch_));
}

}  // namespace
}  // namespace chasqui
