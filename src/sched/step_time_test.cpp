#include "sched/step_time.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

using Kind = Batch::Kind;

// A machine whose steps take exactly this.
struct Machine {
  double row_us = 1000;
  double cell_us = 0;
  Duration time(StepSize size) const {
    return microseconds(static_cast<std::int64_t>(size.rows * row_us + static_cast<double>(size.context()) * cell_us));
  }
};

void learn(StepTime& times, Kind kind, StepSize size, const Machine& machine, int steps = 30) {
  for (int i = 0; i < steps; ++i) times.observe(kind, size, machine.time(size));
}

void expect_near(Duration actual, Duration expected, double share = 0.05) {
  EXPECT_NEAR(to_seconds(actual), to_seconds(expected), share * to_seconds(expected));
}

TEST(StepTime, KnowsNothingAtFirst) {
  const StepTime times;
  EXPECT_FALSE(times.known(Kind::decode));
  EXPECT_FALSE(times.known(Kind::prefill));
  EXPECT_EQ(times.predict(Kind::decode, {4, 400}), Duration::zero());
  EXPECT_EQ(times.prompt_row_seconds(), 0);
  EXPECT_EQ(times.rows_within(seconds(10), {}, {}, 0, 100), 0);
}

TEST(StepTime, OneStepIsEnoughForAFirstIdea) {
  StepTime times;
  times.observe(Kind::prefill, {64, 0}, milliseconds(64));
  EXPECT_TRUE(times.known(Kind::prefill));
  EXPECT_FALSE(times.known(Kind::decode)) << "the kinds are learned apart";
  expect_near(times.predict(Kind::prefill, {64, 0}), milliseconds(64));
  expect_near(times.predict(Kind::prefill, {128, 0}), milliseconds(128));
}

TEST(StepTime, LearnsWhatARowCostsForEachSize) {
  StepTime times;
  learn(times, Kind::decode, {1, 100}, {.row_us = 8000});
  learn(times, Kind::decode, {8, 800}, {.row_us = 2000});
  expect_near(times.predict(Kind::decode, {1, 100}), milliseconds(8));
  expect_near(times.predict(Kind::decode, {8, 800}), milliseconds(16));
  expect_near(times.predict(Kind::decode, {4, 400}), milliseconds(32), 0.1);  // the smaller neighbour stands in
}

TEST(StepTime, LearnsWhatContextCosts) {
  StepTime times;
  const Machine machine{.row_us = 500, .cell_us = 2};
  for (int i = 0; i < 400; ++i) {
    const StepSize size{4, (i % 8) * 500};
    times.observe(Kind::decode, size, machine.time(size));
  }
  expect_near(times.predict(Kind::decode, {4, 4 * 250}), machine.time({4, 4 * 250}), 0.15);
  expect_near(times.predict(Kind::decode, {4, 4 * 3500}), machine.time({4, 4 * 3500}), 0.15);
}

TEST(StepTime, ContextHasAPriceForEachSize) {
  StepTime times;
  const Machine few{.row_us = 500, .cell_us = 10}, many{.row_us = 500, .cell_us = 1};
  for (int i = 0; i < 400; ++i) {
    const TokenCount position = (i % 8) * 300;
    const StepSize small{4, position + 4}, large{64, position + 64};
    times.observe(Kind::prefill, small, few.time(small));
    times.observe(Kind::prefill, large, many.time(large));
  }
  const StepSize small{4, 1000 + 4}, large{64, 1000 + 64};
  expect_near(times.predict(Kind::prefill, small), few.time(small), 0.15);
  expect_near(times.predict(Kind::prefill, large), many.time(large), 0.15);
}

TEST(StepTime, FollowsAMachineThatBecomesSlower) {
  StepTime times;
  learn(times, Kind::decode, {4, 0}, {.row_us = 1000});
  learn(times, Kind::decode, {4, 0}, {.row_us = 2500});
  expect_near(times.predict(Kind::decode, {4, 0}), milliseconds(10));
}

TEST(StepTime, OneInterruptedStepCountsForLittle) {
  StepTime times;
  learn(times, Kind::decode, {4, 400}, {.row_us = 1000});
  times.observe(Kind::decode, {4, 400}, seconds(10));
  EXPECT_LE(times.predict(Kind::decode, {4, 400}), milliseconds(8));
  EXPECT_GT(times.predict(Kind::decode, {4, 400}), milliseconds(4));
}

TEST(StepTime, AStepThatTookNoTimeSaysNothing) {
  StepTime times;
  times.observe(Kind::decode, {4, 400}, Duration::zero());
  times.observe(Kind::decode, {0, 0}, milliseconds(1));
  EXPECT_FALSE(times.known(Kind::decode));
}

TEST(StepTime, RowsWithinATimeAreAsManyAsFit) {
  StepTime times;
  learn(times, Kind::prefill, {64, 0}, {.row_us = 1000});
  EXPECT_EQ(times.rows_within(milliseconds(100), {}, {}, 0, 50), 50) << "all that there are";
  EXPECT_EQ(times.rows_within(milliseconds(100), {}, {}, 0, 1000), 96) << "the largest of kSizes, all being alike";
  EXPECT_EQ(times.rows_within(milliseconds(100), {}, {32, 0}, 0, 1000), 64) << "beside 32 others";
  EXPECT_EQ(times.rows_within(microseconds(900), {}, {}, 0, 1000), 0);
  EXPECT_EQ(times.rows_within(-milliseconds(1), {}, {}, 0, 1000), 0) << "late already";
  EXPECT_EQ(times.rows_within(milliseconds(100), {}, {}, 0, 0), 0);
}

// Rows of batches of 12 are the cheapest; of 16, and of what was not seen beyond it, twice as dear.
TEST(StepTime, RowsWithinATimeAreThoseOfTheBestRate) {
  StepTime times;
  learn(times, Kind::prefill, {8, 0}, {.row_us = 1000});
  learn(times, Kind::prefill, {12, 0}, {.row_us = 600});
  learn(times, Kind::prefill, {16, 0}, {.row_us = 1200});
  const Duration budget = milliseconds(40);
  EXPECT_EQ(times.rows_within(budget, {}, {}, 0, 1000), 12) << "32 would fit";
  EXPECT_EQ(times.rows_within(milliseconds(7), {}, {}, 0, 1000), 7) << "what is cheapest must fit too";
  EXPECT_EQ(times.rows_within(budget, {}, {}, 0, 30), 30) << "all that there are end the matter";
  EXPECT_EQ(times.rows_within(budget, milliseconds(100), {}, 0, 1000), 32)
      << "where each step costs another one, fewer steps are better";
}

// The rows of a long chunk look back at each other, those of short ones at the chunks before: that is no difference.
TEST(StepTime, APromptIsNotCutSmallForWhatItsOwnRowsLookBackAt) {
  StepTime times;
  const Machine machine{.row_us = 100, .cell_us = 1};
  for (int i = 0; i < 400; ++i) {
    const StepSize size{64, (i % 8) * 50 + 64};
    times.observe(Kind::prefill, size, machine.time(size));
  }
  EXPECT_GE(times.rows_within(milliseconds(100), {}, {}, 0, 4000), 192);
}

TEST(StepTime, DeepInAPromptFewerRowsFit) {
  StepTime times;
  const Machine machine{.row_us = 500, .cell_us = 1};
  for (int i = 0; i < 400; ++i) {
    const TokenCount position = (i % 8) * 300;
    const StepSize size{64, position + 64};
    times.observe(Kind::prefill, size, machine.time(size));
  }
  const TokenCount early = times.rows_within(milliseconds(100), {}, {}, 0, 4000);
  const TokenCount late = times.rows_within(milliseconds(100), {}, {}, 2000, 4000);
  EXPECT_GT(early, late);
  EXPECT_GT(late, 0);
}

// Kernels like multiples of 64: 64 rows take less time than 48.
TEST(StepTime, MoreRowsMayTakeLessTime) {
  StepTime times;
  learn(times, Kind::prefill, {48, 0}, {.row_us = 2000});
  learn(times, Kind::prefill, {64, 0}, {.row_us = 500});
  EXPECT_LT(times.predict(Kind::prefill, {64, 0}), times.predict(Kind::prefill, {48, 0}));
  EXPECT_EQ(times.rows_within(milliseconds(35), {}, {}, 0, 1000), 64);
}

TEST(StepTime, ABatchIsSaturatedWhenMoreRowsWouldNotBeCheaper) {
  StepTime times;
  EXPECT_FALSE(times.saturated(16));
  EXPECT_TRUE(times.saturated(64)) << "not seen: large enough for most kernels";
  learn(times, Kind::prefill, {16, 0}, {.row_us = 2000});
  learn(times, Kind::prefill, {64, 0}, {.row_us = 505});
  learn(times, Kind::prefill, {256, 0}, {.row_us = 500});
  EXPECT_FALSE(times.saturated(16));
  EXPECT_TRUE(times.saturated(64)) << "close enough to the best";
  EXPECT_TRUE(times.saturated(256));
  expect_near(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(times.prompt_row_seconds())),
              microseconds(500));
}

TEST(StepTime, ABatchMayBeLargerThanTheLargestSize) {
  StepTime times;
  learn(times, Kind::prefill, {100'000, 0}, {.row_us = 10});
  expect_near(times.predict(Kind::prefill, {200'000, 0}), seconds(2));
}

TEST(StepTime, AllRowsLookBackAsFarAsTheDeepest) {
  const StepSize size = StepSize{}.with(1, 10).with(2, 100).with(1, 20);
  EXPECT_EQ(size.rows, 4);
  EXPECT_EQ(size.deepest, 102);
  EXPECT_EQ(size.context(), 4 * 102);
  EXPECT_EQ((StepSize{100'000, 100'000}).context(), 10'000'000'000ll);
}

TEST(StepTime, PaddingPaysWhereMoreRowsTakeLessTime) {
  StepTime times;
  learn(times, Kind::decode, {6, 0}, {.row_us = 10'000});
  EXPECT_FALSE(times.padding_pays({5, 0}, 8)) << "nothing is known of what it would replace";
  EXPECT_TRUE(times.padding_pays({6, 0}, 8)) << "worth a try";
  learn(times, Kind::decode, {8, 0}, {.row_us = 5'000});
  EXPECT_TRUE(times.padding_pays({6, 0}, 8)) << "40 ms instead of 60";
  learn(times, Kind::decode, {8, 0}, {.row_us = 9'000});
  EXPECT_FALSE(times.padding_pays({6, 0}, 8)) << "72 ms instead of 60";
}

TEST(StepTime, WhatWasSeenOnceOrLongAgoMayBeBetterThanItSeems) {
  StepTime times;
  EXPECT_LT(times.hope(Kind::decode, 8), 1) << "never seen";
  learn(times, Kind::decode, {8, 0}, {.row_us = 2000}, 1);
  const double once = times.hope(Kind::decode, 8);
  EXPECT_LT(once, 0.8);
  learn(times, Kind::decode, {8, 0}, {.row_us = 1000}, 1);
  expect_near(times.predict(Kind::decode, {8, 0}), milliseconds(8));
  EXPECT_EQ(times.hope(Kind::decode, 8), 1) << "just seen";
  learn(times, Kind::decode, {4, 0}, {.row_us = 1000}, 20);
  const double later = times.hope(Kind::decode, 8);
  EXPECT_LT(later, 1);
  learn(times, Kind::decode, {4, 0}, {.row_us = 1000}, 500);
  EXPECT_LT(times.hope(Kind::decode, 8), later);
  EXPECT_GT(times.hope(Kind::decode, 8), once);
}

TEST(StepTime, WhenTheMachineSlowsDownAllSizesAreExpectedToTakeLongerAtOnce) {
  StepTime times;
  learn(times, Kind::prefill, {16, 0}, {.row_us = 1000});
  learn(times, Kind::prefill, {64, 0}, {.row_us = 1000});
  learn(times, Kind::decode, {4, 0}, {.row_us = 1000});
  learn(times, Kind::prefill, {16, 0}, {.row_us = 2000}, 3);
  EXPECT_GT(times.predict(Kind::prefill, {64, 0}), milliseconds(64 * 5 / 4));
  EXPECT_GT(times.predict(Kind::decode, {4, 0}), milliseconds(4 * 5 / 4));
  learn(times, Kind::prefill, {16, 0}, {.row_us = 1000}, 10);
  expect_near(times.predict(Kind::prefill, {64, 0}), milliseconds(64));
}

TEST(StepTime, APassIsTheLeastThatAnyStepTakes) {
  StepTime times;
  EXPECT_EQ(times.pass(), Duration::zero());
  times.observe(Batch::Kind::decode, {16, 0}, milliseconds(90));
  times.observe(Batch::Kind::prefill, {64, 0}, milliseconds(240));
  EXPECT_EQ(times.pass(), milliseconds(90));
  times.observe(Batch::Kind::decode, {1, 0}, milliseconds(30));
  EXPECT_EQ(times.pass(), milliseconds(30));
}

TEST(StepTime, AChunkThatWasSlowOnceIsTriedAgain) {
  StepTime times;
  learn(times, Kind::prefill, {8, 0}, {.row_us = 160'000});
  times.observe(Kind::prefill, {16, 0}, seconds(4));  // something else had the processor
  EXPECT_EQ(times.rows_within(seconds(3), {}, {}, 0, 160), 16);
  times.observe(Kind::prefill, {16, 0}, seconds(4));
  EXPECT_LT(times.rows_within(seconds(3), {}, {}, 0, 160), 16) << "it is slow indeed";
  times.observe(Kind::prefill, {16, 0}, seconds(2));
  learn(times, Kind::prefill, {16, 0}, {.row_us = 125'000});
  EXPECT_GE(times.rows_within(seconds(3), {}, {}, 0, 160), 16);
}

TEST(StepTime, AFirstStepThatTookLongIsNotRemembered) {
  StepTime times;
  times.observe(Kind::prefill, {512, 512}, seconds(30));  // weights came from the disk
  times.observe(Kind::prefill, {512, 512}, milliseconds(50));
  EXPECT_NEAR(times.measured_row_seconds(), 0.05 / 512, 1e-6);
}

TEST(StepTime, WhatRowsOfPromptsTookLatelyIsNotHiddenInTheirCells) {
  StepTime times;
  EXPECT_EQ(times.read_row_seconds(), 0);
  EXPECT_EQ(times.measured_row_seconds(), 0);
  learn(times, Kind::prefill, {12, 0}, {.row_us = 10'000});
  learn(times, Kind::prefill, {12, 4000}, {.row_us = 10'000, .cell_us = 20}, 200);
  // What its neighbour's cells cost is far too much for this size: the error eats what its rows cost.
  learn(times, Kind::prefill, {11, 4000}, {.row_us = 1000}, 400);
  expect_near(times.predict(Kind::prefill, {11, 4000}), milliseconds(11));
  EXPECT_LT(times.prompt_row_seconds(), 0.0001);
  EXPECT_NEAR(times.measured_row_seconds(), 0.001, 0.0001) << "of the best size";
  EXPECT_GT(times.read_row_seconds(), 0.001) << "and some of the dear rows before";
  EXPECT_LT(times.read_row_seconds(), 0.02);
  learn(times, Kind::decode, {4, 0}, {.row_us = 1e6});
  learn(times, Kind::prefill, {64, 0}, {.row_us = 500}, 300);
  EXPECT_NEAR(times.read_row_seconds(), 0.0005, 0.00005);
}

}  // namespace
}  // namespace chasqui
