// Slots and cells: one pool whose cells run out, holes between slots, rows of prompts that fill them.
#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

using Parts = FakeWorker::Parts;

std::vector<std::int32_t> slots_of(const Batch& batch) {
  std::vector<std::int32_t> slots;
  for (const BatchPart& part : batch.parts) slots.push_back(part.slot.value);
  return slots;
}

TEST(SchedulerPool, AnswersThatMightNotFitTogetherStartTogether) {
  FakeWorker worker(one_pool(4, 100));
  worker.add(1, 20, 60);  // 20 + 60 and 20 + 60: more than there is, but who knows how long they will be
  worker.add(2, {.prompt = 20, .max_tokens = 60, .script = {.end_after = 10}});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 2u);
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.preemptions(), 0u);
}

TEST(SchedulerPool, APromptWaitsUntilItsCellsAreFreeAndIsNotPassed) {
  FakeWorker worker(one_pool(4, 100));
  worker.add(1, {.prompt = 60, .max_tokens = 5, .service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 50, .max_tokens = 5, .service_class = kInteractive});
  worker.add(3, {.prompt = 10, .max_tokens = 5});  // would fit, but it is not its turn
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 1u);
  EXPECT_EQ(worker.scheduler.waiting(), 2u);
  worker.run_until_finished(1);
  EXPECT_EQ(worker.of(2).tokens + worker.of(3).tokens, 0);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 2u) << "60 cells, and a few for what they will say";
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.preemptions(), 0u);
}

TEST(SchedulerPool, NoRequestStartsThatWouldBePreemptedAtOnce) {
  FakeWorker worker(one_pool(4, 100));
  worker.add(1, 60, 30);
  worker.add(2, 39, 20);  // fits to the last cell but one
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 1u);
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.preemptions(), 0u);
}

TEST(SchedulerPool, ALongestPromptFitsWhenItIsAlone) {
  FakeWorker worker(one_pool(4, 100));
  worker.add(1, 99, 1);
  worker.add(2, 99, 1);
  worker.run_to_end();
  EXPECT_EQ(worker.ending, (std::vector<std::uint64_t>{1, 2}));
}

// Three prompts of 20 leave 40 cells: they last until each has said 13 tokens.
struct Scarce {
  ServiceClass classes[3];
  std::uint64_t victim;
};

TEST(SchedulerPool, WhenCellsRunOutOnlyTheLeastUrgentAndNewestIsPreempted) {
  const Scarce cases[] = {
      {{kStandard, kStandard, kStandard}, 3},
      {{kInteractive, kBackground, kBackground}, 3},
      {{kInteractive, kBackground, kStandard}, 2},
      {{kBackground, kStandard, kInteractive}, 1},
  };
  for (const Scarce& scarce : cases) {
    SCOPED_TRACE(scarce.victim);
    FakeWorker worker(one_pool(4, 100));
    for (std::uint64_t id = 1; id <= 3; ++id) {
      worker.add(id, {.prompt = 20, .max_tokens = 30, .service_class = scarce.classes[id - 1]});
    }
    while (worker.scheduler.preemptions() == 0) ASSERT_TRUE(worker.step());
    EXPECT_EQ(worker.scheduler.running(), 2u);
    EXPECT_FALSE(worker.has_part(scarce.victim));
    EXPECT_GE(worker.of(scarce.victim).tokens, 10) << "not before it has to";
    worker.run_to_end();
    EXPECT_EQ(worker.scheduler.preemptions(), 1u);
    EXPECT_EQ(worker.ending.back(), scarce.victim);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      EXPECT_EQ(worker.reason(id), FinishReason::length);
      EXPECT_EQ(worker.of(id).tokens, 30);
    }
  }
}

TEST(SchedulerPool, EverybodyFinishesHoweverScarceCellsAre) {
  FakeWorker worker(one_pool(4, 60));
  for (std::uint64_t id = 1; id <= 12; ++id) {
    worker.add(id, {.prompt = 8, .max_tokens = 50, .service_class = static_cast<ServiceClass>(id % 3)});
  }
  worker.run_to_end();
  EXPECT_GT(worker.scheduler.preemptions(), 0u);
  EXPECT_LT(worker.scheduler.preemptions(), 60u) << "a slot is not taken and given for nothing";
  for (std::uint64_t id = 1; id <= 12; ++id) EXPECT_EQ(worker.of(id).tokens, 50);
}

TEST(SchedulerPool, InteractiveGetsTheCellsOfBackground) {
  FakeWorker worker(one_pool(4, 100));
  worker.add(1, {.prompt = 10, .max_tokens = 20, .service_class = kStandard});
  worker.add(2, {.prompt = 50, .max_tokens = 20, .service_class = kBackground});
  ASSERT_TRUE(worker.step());
  ASSERT_TRUE(worker.step());
  worker.add(3, {.prompt = 40, .max_tokens = 3, .service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
  worker.run_to_end();
  EXPECT_EQ(worker.ending, (std::vector<std::uint64_t>{3, 1, 2}));
}

TEST(SchedulerPool, APromptThatNeedsAllCellsCanTakeThemFromBackground) {
  FakeWorker worker(one_pool(4, 100));
  worker.add(1, {.prompt = 10, .max_tokens = 80, .service_class = kBackground});
  ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 97, .max_tokens = 2, .service_class = kInteractive});
  worker.run_to_end();
  EXPECT_EQ(worker.ending, (std::vector<std::uint64_t>{2, 1}));
}

TEST(SchedulerPool, NoSequenceIsPreemptedInVain) {
  FakeWorker worker(one_pool(4, 100));
  worker.add(1, {.prompt = 60, .max_tokens = 20, .service_class = kInteractive});
  worker.add(2, {.prompt = 10, .max_tokens = 10, .service_class = kBackground});
  ASSERT_TRUE(worker.step());
  worker.add(3, {.prompt = 50, .max_tokens = 1, .service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.preemptions(), 0u) << "the cells of the interactive one would still be missing";
  worker.run_to_end();
}

TEST(SchedulerSlots, AHoleIsClosedByTheLastSlotAndTheTextStaysRight) {
  FakeWorker worker(dense_streams(4));
  worker.add(1, 10, 5);
  worker.add(2, 10, 30);
  worker.add(3, 10, 30);
  worker.run_until_finished(1);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.moves(), 1u);
  EXPECT_EQ(worker.parts, (Parts{{3, 1}, {2, 1}}));
  EXPECT_EQ(slots_of(worker.batch), (std::vector<std::int32_t>{0, 1}));
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.moves(), 1u) << "the last one alone is at the front already";
}

TEST(SchedulerSlots, WhoComesFillsTheHoleWithoutAMove) {
  FakeWorker worker(dense_streams(4));
  worker.add(1, 10, 5);
  worker.add(2, 10, 30);
  worker.add(3, 10, 30);
  worker.run_until_finished(1);
  worker.add(4, 10, 5);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.moves(), 0u);
  worker.run_until_finished(4);
  worker.run_to_end();
}

TEST(SchedulerSlots, FewMovesAreMadeBeforeOneStep) {
  FakeWorker worker(dense_streams(16, 64));
  for (std::uint64_t id = 1; id <= 16; ++id) worker.add(id, {.prompt = 4, .max_tokens = 60});
  while (worker.of(16).tokens < 3) ASSERT_TRUE(worker.step());
  for (std::uint64_t id = 1; id <= 8; ++id) worker.cancel(id);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.batch.moves.size(), 4u);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.batch.moves.size(), 4u);
  EXPECT_EQ(slots_of(worker.batch), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  ASSERT_TRUE(worker.step());
  EXPECT_TRUE(worker.batch.moves.empty());
  worker.run_to_end();
}

TEST(SchedulerSlots, OneThatIsStillReadingMovesToo) {
  FakeWorker worker(dense_streams(4, 32, 1000));
  worker.row_cost = milliseconds(4);
  worker.add(1, 10, 3);
  worker.add(2, 10, 30);
  ASSERT_TRUE(worker.step());
  worker.add(3, 900, 3);
  worker.run_until_finished(1);
  ASSERT_EQ(worker.of(3).tokens, 0) << "it is not through with its prompt";
  worker.run_to_end();
  EXPECT_GE(worker.scheduler.moves(), 1u);
}

// A prompt comes first and two streams after it, with one slot to spare.
TEST(SchedulerSlots, ALongPromptMakesRoomForDecodingOnesAndTheEndOfOneStays) {
  for (const bool is_long : {true, false}) {
    FakeWorker worker(dense_streams(4, 64, 1000));
    worker.add(1, {.prompt = is_long ? 900 : 120, .max_tokens = 3});
    ASSERT_TRUE(worker.step());
    ASSERT_EQ(worker.parts, (Parts{{1, 64}}));
    for (const std::uint64_t id : {2, 3}) {
      worker.add(id, {.prompt = 4, .max_tokens = 100, .service_class = kInteractive});
    }
    while (worker.of(3).tokens == 0 || !worker.decoded()) ASSERT_TRUE(worker.step());
    if (is_long) {
      EXPECT_EQ(worker.parts, (Parts{{3, 1}, {2, 1}}));
      EXPECT_EQ(slots_of(worker.batch), (std::vector<std::int32_t>{0, 1}));
      EXPECT_EQ(worker.scheduler.moves(), 2u);
    } else {
      EXPECT_EQ(worker.parts, (Parts{{1, 1}, {2, 1}, {3, 1}}));
      EXPECT_EQ(worker.scheduler.moves(), 0u);
    }
    worker.run_to_end();
    EXPECT_EQ(worker.of(1).tokens, 3);
  }
}

TEST(SchedulerSlots, AHoleBehindThePromptThatStaysIsClosedToo) {
  FakeWorker worker(dense_streams(4));
  for (std::uint64_t id = 1; id <= 4; ++id) worker.add(id, {.prompt = 4, .max_tokens = 60});
  while (worker.of(4).tokens < 3) ASSERT_TRUE(worker.step());
  worker.cancel(1);
  worker.cancel(3);
  worker.add(5, {.prompt = 60, .max_tokens = 3});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.moves(), 1u);
  while (!worker.decoded()) ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{4, 1}, {2, 1}, {5, 1}}));
  EXPECT_EQ(slots_of(worker.batch), (std::vector<std::int32_t>{0, 1, 2}));
  worker.run_to_end();
}

// A long prompt in slot 3 that had nowhere to go, and then holes in 0, 1 and 2.
TEST(SchedulerSlots, APromptThatMakesRoomTakesTwoOfTheFewMovesOfAStep) {
  FakeWorker worker(dense_streams(10, 64, 3000));
  for (std::uint64_t id = 1; id <= 10; ++id) worker.add(id, {.prompt = id == 4 ? 2900 : 4, .max_tokens = 90});
  while (worker.of(10).tokens < 3) ASSERT_TRUE(worker.step());
  ASSERT_EQ(worker.scheduler.moves(), 0u);
  for (const std::uint64_t id : {1, 2, 3}) worker.cancel(id);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.batch.moves.size(), 3u) << "with both of the prompt's they would be five";
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.batch.moves.size(), 2u);
  ASSERT_TRUE(worker.step());
  EXPECT_TRUE(worker.batch.moves.empty());
  while (!worker.decoded()) ASSERT_TRUE(worker.step());
  EXPECT_EQ(slots_of(worker.batch), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  worker.run_to_end();
}

TEST(SchedulerSlots, WhereSlotsNeedNotBeAdjacentNoSequenceMoves) {
  FakeWorker worker(streams(4));
  worker.add(1, 10, 5);
  worker.add(2, 10, 30);
  worker.add(3, 10, 30);
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.moves(), 0u);
}

TEST(SchedulerSlots, AMoveIsNotForgottenWhenTheStepIsAborted) {
  FakeWorker worker(dense_streams(4));
  worker.add(1, 10, 5);
  worker.add(2, 10, 30);
  worker.add(3, 10, 30);
  worker.run_until_finished(1);
  ASSERT_TRUE(worker.step(DecodeStatus::aborted));
  EXPECT_EQ(worker.batch.moves.size(), 1u);
  worker.run_to_end();
  EXPECT_EQ(worker.of(3).tokens, 30);
}

TEST(SchedulerSlots, ARowOfAPromptFillsTheHoleBetweenDecodingSlots) {
  for (const bool dense : {true, false}) {
    FakeWorker worker(dense ? dense_streams(3, 32, 1000) : streams(3, 32, 1000));
    worker.row_cost = milliseconds(2);
    worker.add(1, {.prompt = 4, .max_tokens = 100});
    ASSERT_TRUE(worker.step());
    worker.add(2, {.prompt = 900, .max_tokens = 1});
    ASSERT_TRUE(worker.step());
    worker.add(3, {.prompt = 4, .max_tokens = 100, .service_class = kInteractive});
    while (worker.of(3).tokens == 0) ASSERT_TRUE(worker.step());
    while (!worker.decoded()) ASSERT_TRUE(worker.step());
    if (dense) {
      EXPECT_EQ(worker.parts, (Parts{{1, 1}, {2, 1}, {3, 1}}));
    } else {
      EXPECT_EQ(worker.parts, (Parts{{1, 1}, {3, 1}}));
    }
    worker.run_to_end();
    EXPECT_EQ(worker.reason(2), FinishReason::length);
  }
}

TEST(SchedulerSlots, TheLastRowOfAPromptMayBeTheOneThatFillsAHole) {
  FakeWorker worker(dense_streams(3, 16, 1000));
  worker.add(1, {.prompt = 4, .max_tokens = 300});
  ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 41, .max_tokens = 4});
  ASSERT_TRUE(worker.step());
  worker.add(3, {.prompt = 4, .max_tokens = 300, .service_class = kInteractive});
  bool sampled = false;
  for (int i = 0; i < 60 && !worker.finished(2); ++i) {
    const bool silent = worker.of(2).tokens == 0;
    worker.clock.advance(milliseconds(160));  // always late: no time for chunks
    ASSERT_TRUE(worker.step());
    sampled |= worker.decoded() && silent && worker.of(2).tokens == 1;
  }
  EXPECT_TRUE(sampled);
  worker.run_to_end();
}

}  // namespace
}  // namespace chasqui
