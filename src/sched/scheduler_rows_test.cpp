// Which rows are in a step: how long chunks are, beside streams and alone, and who is left out of a full decode step.
#include <algorithm>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

using Parts = FakeWorker::Parts;

TEST(SchedulerRows, AStreamGetsItsTokensInTimeWhileALongPromptIsRead) {
  for (const ServiceClass service_class : {kInteractive, kStandard, kBackground}) {
    FakeWorker worker(streams(2, 512, 3000));
    worker.row_cost = milliseconds(1);
    worker.add(1, {.prompt = 64, .max_tokens = 200, .service_class = service_class});
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(worker.step());
    worker.add(2, {.prompt = 2500, .max_tokens = 1, .service_class = service_class});
    while (!worker.finished(2)) ASSERT_TRUE(worker.step());
    const Duration target = SchedulerTargets().of[static_cast<std::size_t>(service_class)].next_token;
    EXPECT_LE(worker.of(1).gap_max, target * 9 / 8) << name(service_class);
    EXPECT_GE(worker.of(1).gap_max, std::min<Duration>(target, milliseconds(512)) / 2) << "and the time is used";
    worker.run_to_end();
  }
}

TEST(SchedulerRows, AStreamThatWantsItsTokensSoonerGetsThemSooner) {
  const auto gap = [](Duration tpot) {
    FakeWorker worker(streams(2, 512, 3000));
    worker.row_cost = milliseconds(1);
    worker.add(1, {.prompt = 64, .max_tokens = 200, .service_class = kBackground, .tpot = tpot});
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(worker.step());
    worker.add(2, {.prompt = 2500, .max_tokens = 1, .service_class = kBackground});
    while (!worker.finished(2)) EXPECT_TRUE(worker.step());
    const Duration gap_max = worker.of(1).gap_max;
    worker.run_to_end();
    return gap_max;
  };
  EXPECT_LE(gap(milliseconds(120)), milliseconds(120) * 9 / 8);
  EXPECT_GT(gap(Duration::zero()), milliseconds(250)) << "as the class has it";
}

// On a slow model the targets would leave a prompt a few rows between decode steps, each as dear as a pass.
TEST(SchedulerRows, TargetsStretchWithTheCostOfAPass) {
  FakeWorker worker(streams(2, 512, 3000));
  worker.step_cost = milliseconds(400);
  worker.row_cost = milliseconds(100);
  worker.add(1, {.prompt = 16, .max_tokens = 300});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 400, .max_tokens = 1});
  int chunks = 0;
  Duration stretch{};
  while (!worker.finished(2)) {
    ASSERT_TRUE(worker.step());
    if (worker.decoded()) continue;
    ++chunks;
    stretch = std::max(stretch, worker.batch.stretch);
  }
  EXPECT_LE(chunks, 25) << "with 16 rows or more in each, a row costs 1.25 times the least";
  EXPECT_LE(worker.of(1).gap_max, 9 * milliseconds(500));
  EXPECT_GT(stretch, seconds(2)) << "and it is told";
  worker.run_to_end();
}

// A stream of a lesser class leaves prompts more of the time, because their rows are cheaper in larger chunks.
TEST(SchedulerRows, ThePauseOfAStreamGrowsWithTheNumberOfPromptsAndByItsClass) {
  const auto gap_beside = [](int prompts, ServiceClass service_class) {
    FakeWorker worker(streams(16, 512, 3000));
    worker.step_cost = milliseconds(400);
    worker.row_cost = milliseconds(100);
    worker.add(99, {.prompt = 1500, .max_tokens = 1});  // what large chunks take is known after it
    while (!worker.finished(99)) worker.step();
    worker.add(1, {.prompt = 16, .max_tokens = 300, .service_class = service_class});
    for (int i = 0; i < 5; ++i) worker.step();
    for (int i = 0; i < prompts; ++i) worker.add(2 + i, {.prompt = 400, .max_tokens = 1});
    while (!worker.finished(2)) worker.step();
    return worker.of(1).gap_max;
  };
  for (const auto& [service_class, most] : {std::pair(kInteractive, 2), std::pair(kStandard, 3)}) {
    const Duration one = gap_beside(1, service_class);
    const Duration four = gap_beside(4, service_class);
    EXPECT_GT(four, one) << name(service_class);
    EXPECT_LE(four, most * one) << name(service_class);
    EXPECT_LE(gap_beside(12, service_class), four + milliseconds(500)) << name(service_class);
  }
  EXPECT_GT(gap_beside(4, kStandard), gap_beside(4, kInteractive));
}

TEST(SchedulerRows, AChunkIsNeverSoSmallThatItsRowsCostTwiceWhatTheyHaveTo) {
  SchedulerConfig config = streams(2, 512, 3000);
  for (ClassTarget& target : config.targets.of) target.next_token = Duration::zero();
  FakeWorker worker(config);
  worker.step_cost = milliseconds(20);
  worker.row_cost = milliseconds(1);
  worker.add(1, {.prompt = 16, .max_tokens = -1});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 2800, .max_tokens = 1});
  bool decoded_before = true;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(worker.step());
    EXPECT_NE(worker.decoded(), decoded_before) << "prefill and decode take turns";
    EXPECT_TRUE(worker.decoded() || worker.parts.front().second >= 20) << worker.parts.front().second;
    decoded_before = worker.decoded();
  }
}

TEST(SchedulerRows, WithNoStreamAPromptIsReadInWholeMicroBatchesThatAnArrivalCuts) {
  FakeWorker worker(streams(3, 2048, 3000));
  worker.row_cost = milliseconds(4);
  worker.add(1, {.prompt = 64, .max_tokens = 5});
  worker.run_to_end();
  worker.add(2, {.prompt = 2500, .max_tokens = 1});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{2, 512}}));
  EXPECT_EQ(worker.batch.cut_by, static_cast<int>(kStandard)) << "two seconds are much of 5, and more of 1";
  ASSERT_TRUE(worker.step(DecodeStatus::aborted));
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.batch.cut_by, Batch::kUncut) << "more arrivals may come";
  EXPECT_LE(worker.result.compute, milliseconds(250) * 9 / 8) << "so they wait for the end of a short step";
  worker.run_to_end();
  worker.add(3, {.prompt = 2500, .max_tokens = 1});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.batch.cut_by, static_cast<int>(kStandard)) << "the server was idle in between";
  worker.run_to_end();
}

// A model whose memory is a state: that of one sequence is copied before the step, so that it can be brought back.
TEST(SchedulerRows, WhereOnlyAStepOfOnePromptIsCutSeveralAreReadInShortOnes) {
  SchedulerConfig config = streams(3, 2048, 3000);
  config.dense_slots = config.cuts_joined = false;
  FakeWorker worker(config);
  worker.row_cost = milliseconds(4);
  worker.add(1, {.prompt = 64, .max_tokens = 5});
  worker.run_to_end();
  worker.add(2, {.prompt = 2500, .max_tokens = 1});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{2, 512}}));
  EXPECT_EQ(worker.batch.cut_by, static_cast<int>(kStandard));
  worker.add(3, {.prompt = 2500, .max_tokens = 1});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(worker.step());
    EXPECT_EQ(worker.batch.cut_by, Batch::kUncut);
    EXPECT_LE(worker.result.compute, milliseconds(250) * 9 / 8) << "an arrival waits for its end";
  }
  worker.run_to_end();
}

TEST(SchedulerRows, AStepWhoseClientHasLeftWasCutByNoArrival) {
  FakeWorker worker(streams(3, 2048, 3000));
  worker.row_cost = microseconds(400);
  worker.add(1, {.prompt = 64, .max_tokens = 5});
  worker.run_to_end();
  worker.add(2, {.prompt = 2500, .max_tokens = 1});
  ASSERT_TRUE(worker.step(DecodeStatus::aborted));
  EXPECT_EQ(worker.batch.cut_by, Batch::kUncut) << "an arrival can wait for its end";
  worker.row_cost = milliseconds(4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(worker.step());
    EXPECT_EQ(worker.parts, (Parts{{2, 512}}));
  }
  worker.run_to_end();
}

TEST(SchedulerRows, AnArrivalThatWouldHaveNoSlotCutsNothing) {
  FakeWorker worker(streams(1, 2048, 3000));
  worker.row_cost = milliseconds(4);
  worker.add(1, {.prompt = 64, .max_tokens = 1, .service_class = kBackground});
  worker.run_to_end();
  worker.add(2, {.prompt = 2500, .max_tokens = 1, .service_class = kBackground});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.batch.cut_by, static_cast<int>(kStandard)) << "more urgent ones take its slot";
  worker.run_to_end();
}

// The first steps of a model that turns out to be very slow, or comes from a slow disk.
TEST(SchedulerRows, WhatAnArrivalCannotCutGrowsWithWhatIsKnownOfTheModel) {
  SchedulerConfig config = streams(1, 512, 3000);
  config.cuts_steps = false;
  FakeWorker worker(config);
  worker.add(1, {.prompt = 2000, .max_tokens = 1});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 64}}));
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 512}}));
  worker.run_to_end();
}

TEST(SchedulerRows, AnArrivalCutsAStepOfAnUnknownModel) {
  FakeWorker worker(streams(2, 512, 3000));
  worker.add(1, {.prompt = 2000, .max_tokens = 1});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 512}}));
  EXPECT_EQ(worker.batch.cut_by, static_cast<int>(kStandard));
  worker.run_to_end();
}

// Under load the short ones pass, of its own class and of a more urgent one.
TEST(SchedulerRows, ThePromptThatHasWaitedLongestForRowsHasEveryThirdPrefillStep) {
  for (const ServiceClass passing : {kStandard, kInteractive}) {
    SchedulerConfig config = streams(2, 64, 3000);
    config.targets.prefill_step = milliseconds(200);  // no two prompts in one step
    FakeWorker worker(config);
    worker.row_cost = milliseconds(4);
    worker.add(1, {.prompt = 2500, .max_tokens = 1});
    ASSERT_TRUE(worker.step());
    int turns = 0, passed = 0;
    for (std::uint64_t id = 2; turns < 8;) {
      if (worker.scheduler.waiting() == 0) worker.add(id++, {.prompt = 50, .max_tokens = 1, .service_class = passing});
      ASSERT_TRUE(worker.step());
      ++(worker.has_part(1) ? turns : passed);
    }
    EXPECT_GE(passed, turns) << name(passing);
    EXPECT_LE(passed, 3 * turns) << name(passing);
  }
}

// Leaving some out makes holes in the slots, and each hole costs a pass over the weights.
TEST(SchedulerRows, EachStreamIsInEachDecodeStepWhateverItsClass) {
  FakeWorker worker(dense_streams(6, 64, 1000));
  worker.row_cost = microseconds(100);
  worker.decode_row_cost = milliseconds(30);
  for (std::uint64_t id = 1; id <= 6; ++id) {
    worker.add(id, {.max_tokens = 50, .service_class = id % 2 == 0 ? kBackground : kInteractive});
  }
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker.step());
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(worker.step());
    EXPECT_EQ(worker.parts.size(), 6u);
    EXPECT_EQ(worker.batch.passes, 1);
  }
  worker.run_to_end();
}

TEST(SchedulerRows, MoreLesserStreamsThanRowsTakeTurnsToo) {
  FakeWorker worker(streams(4, 2));
  worker.row_cost = microseconds(100);
  worker.add(1, {.prompt = 1, .max_tokens = 60, .service_class = kInteractive});
  for (std::uint64_t id = 2; id <= 4; ++id)
    worker.add(id, {.prompt = 1, .max_tokens = -1, .service_class = kBackground});
  worker.run_until_finished(1);
  for (const std::uint64_t id : {2, 3, 4}) EXPECT_GE(worker.of(id).tokens, 15) << id;
  worker.run_to_end();
}

TEST(SchedulerRows, MoreStreamsThanRowsTakeTurns) {
  FakeWorker worker(streams(4, 2));
  worker.row_cost = microseconds(100);
  worker.add(1, {.prompt = 1, .max_tokens = 60});
  worker.add(2, {.prompt = 1, .max_tokens = 60});
  worker.add(3, {.prompt = 1, .max_tokens = 60});
  worker.add(4, {.prompt = 1, .max_tokens = 60, .service_class = kBackground});
  worker.run_until_finished(1);
  EXPECT_GE(worker.of(2).tokens, 55);
  EXPECT_GE(worker.of(3).tokens, 55) << "the one in the middle too";
  worker.run_to_end();
}

}  // namespace
}  // namespace chasqui
