// Copies and slots: preemption, restores that fail, moves, one pool, and models whose KV cannot be cut.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

SchedulerConfig cached_slots(std::int32_t slots) { return with_cache(streams(slots, 32, 400)); }

SchedulerConfig uncut_streams(std::int32_t slots) {
  SchedulerConfig config = cached_slots(slots);
  config.reuse.cache.cut_anywhere = false;
  return config;
}

TEST(SchedulerReusePreemption, WhoLostItsSlotComesBackWithoutComputingAgain) {
  FakeWorker worker(cached_slots(1));
  worker.add(1, {.prompt = 60, .max_tokens = 20, .service_class = kBackground});
  while (worker.of(1).tokens < 5) ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 10, .max_tokens = 3, .service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
  EXPECT_EQ(worker.batch.saves.size(), 1u) << "in the step that gives its slot away";
  EXPECT_FALSE(worker.batch.rows.empty());
  worker.run_to_end();
  EXPECT_EQ(worker.model.prompt_rows(1), 60);
  EXPECT_EQ(worker.model.restores(), 1u);
  EXPECT_EQ(worker.of(1).tokens, 20);
  EXPECT_EQ(worker.cached(1), 0) << "nothing of its prompt was there before it came";
}

TEST(SchedulerReusePreemption, WhoLostItsSlotBeforeItsFirstRowComesBackToo) {
  FakeWorker worker(cached_slots(2));
  worker.add(1, {.prompt = 300, .max_tokens = 3});
  worker.add(2, {.prompt = 100, .max_tokens = 3, .service_class = kBackground});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 2u);
  EXPECT_EQ(worker.model.prompt_rows(2), 0);
  worker.add(3, {.prompt = 10, .max_tokens = 3, .service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
  worker.run_to_end();
  EXPECT_EQ(worker.of(2).tokens, 3);
}

// A slice is as long as copies are a small part of it. Here they are gone before they are needed, so that all of the
// prompt is computed again each time: with slices for copies no prompt would ever be complete.
TEST(SchedulerReusePreemption, ThoseWhoseCopiesDoNotLastKeepTheirSlotsForLonger) {
  SchedulerConfig config = with_cache(streams(2, 64, 2000), 1000 * sizeof(FakeToken));
  config.reuse.cache.cut_anywhere = false;
  FakeWorker worker(config);
  worker.row_cost = milliseconds(20);  // of a prompt: twenty seconds
  for (std::uint64_t id = 1; id <= 20; ++id) worker.add(id, {.prompt = 1000, .max_tokens = 3});
  worker.run_to_end();
  EXPECT_GT(worker.scheduler.preemptions(), 0u);
  EXPECT_LT(worker.model.prompt_rows(), 1500u * 20);
}

TEST(SchedulerReusePreemption, WhoWaitsForTheOneThatLostItsSlotGoesOn) {
  FakeWorker worker(cached_slots(2));
  const auto add = [&](std::uint64_t id) {
    worker.add(id, {.prompt = 300, .max_tokens = 3, .service_class = kBackground, .shared = 290});
  };
  add(1);
  add(2);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 1u);
  for (const std::uint64_t id : {3, 4}) {
    worker.add(id, {.prompt = 50, .max_tokens = 10, .service_class = kInteractive});
  }
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
  worker.run_to_end();
  EXPECT_EQ(worker.model.prompt_rows(), 290u + 2 * 10 + 2 * 50);
}

// A turn of the background class gives the slot to a request that has not run out of patience, and so yields to the
// interactive request that comes next.
TEST(SchedulerReuseRestores, WhatCannotBeBroughtBackIsComputed) {
  FakeWorker worker(cached_slots(4));
  worker.add(1, {.prompt = 100, .max_tokens = 3, .shared = 100});
  worker.run_to_end();
  worker.model.restores_to_fail = 1;
  worker.add(2, {.prompt = 100, .max_tokens = 3, .shared = 100});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.result.status, DecodeStatus::aborted);
  EXPECT_EQ(worker.scheduler.ledger().cells_used(), 0);
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2), 0);
  EXPECT_EQ(worker.model.prompt_rows(2), 100);
}

TEST(SchedulerReuseRestores, OneThatFailsTakesNoOtherAlong) {
  FakeWorker worker(cached_slots(4));
  worker.add(1, {.prompt = 100, .max_tokens = 3, .shared = 90});
  worker.run_to_end();
  worker.model.restores_to_fail = 1;
  for (std::uint64_t id = 2; id <= 4; ++id) worker.add(id, {.prompt = 100, .max_tokens = 3, .shared = 90});
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2) + worker.cached(3) + worker.cached(4), 180);
  EXPECT_EQ(worker.model.prompt_rows(), 100u + 100 + 10 + 10);
}

TEST(SchedulerReuseRestores, OneWhoWasAnsweringIsReadAgainWhenItCannotBeBroughtBack) {
  FakeWorker worker(cached_slots(1));
  worker.add(1, {.prompt = 60, .max_tokens = 20, .service_class = kBackground});
  while (worker.of(1).tokens < 5) ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 10, .max_tokens = 3, .service_class = kInteractive});
  worker.model.restores_to_fail = 1;
  worker.run_to_end();
  EXPECT_EQ(worker.model.refused_restores(), 1u);
  EXPECT_EQ(worker.model.prompt_rows(1), 120);
  EXPECT_EQ(worker.of(1).tokens, 20);
}

TEST(SchedulerReuseRestores, AnAbortedStepKeepsWhatItBroughtBack) {
  FakeWorker worker(cached_slots(4));
  worker.add(1, {.prompt = 100, .max_tokens = 3, .shared = 100});
  worker.run_to_end();
  worker.add(2, {.prompt = 100, .max_tokens = 3, .shared = 100});
  ASSERT_TRUE(worker.step(DecodeStatus::aborted));
  worker.run_to_end();
  EXPECT_EQ(worker.model.restores(), 1u);
  EXPECT_EQ(worker.model.prompt_rows(2), 1);
}

// Two decode in the slots 1 and 2; who is restored into 0 has a long way to go, and makes room at once.
TEST(SchedulerReuseRestores, WhoIsBroughtBackMayMoveInTheSameStep) {
  for (const bool fails : {false, true}) {
    FakeWorker worker(with_cache(dense_streams(4, 32, 400)));
    worker.add(9, {.prompt = 100, .max_tokens = 2, .shared = 40});
    worker.run_to_end();
    for (std::uint64_t id = 1; id <= 3; ++id) worker.add(id, {.prompt = 5, .max_tokens = 80});
    while (worker.of(3).tokens < 3) ASSERT_TRUE(worker.step());
    worker.cancel(1);
    worker.add(4, {.prompt = 200, .max_tokens = 3, .shared = 40});
    worker.model.restores_to_fail = fails ? 1 : 0;
    ASSERT_TRUE(worker.step());
    ASSERT_EQ(worker.batch.restores.size(), 1u);
    EXPECT_EQ(worker.batch.restores[0].slot, SlotId{0});
    ASSERT_FALSE(worker.batch.moves.empty());
    EXPECT_EQ(worker.batch.moves[0].from, SlotId{0});
    EXPECT_EQ(worker.model.moved_restores(), 1u);
    worker.run_to_end();
    EXPECT_EQ(worker.cached(4), fails ? 0 : 40);
    EXPECT_EQ(worker.model.prompt_rows(4), fails ? 200 : 160);
  }
}

TEST(SchedulerReusePool, ASnapshotIsBroughtBackOnlyWhereAllOfItFits) {
  for (const bool crowded : {true, false}) {
    FakeWorker worker(with_cache(one_pool(4, 200)));
    worker.add(1, {.prompt = 120, .max_tokens = 20, .shared = 40});
    worker.run_to_end();
    if (crowded) {
      worker.add(2, 90, 30);
      while (worker.of(2).tokens < 2) ASSERT_TRUE(worker.step());
    }
    worker.add(3, {.prompt = 50, .max_tokens = 3, .shared = 40});
    worker.run_to_end();
    EXPECT_EQ(worker.cached(3), crowded ? 0 : 40);
  }
}

TEST(SchedulerReusePool, WhoGaveUpItsCellsComesBackWithoutComputingAgain) {
  FakeWorker worker(with_cache(one_pool(4, 100)));
  worker.add(1, 20, 60);
  worker.add(2, 20, 60);
  worker.run_to_end();
  EXPECT_GT(worker.scheduler.preemptions(), 0u);
  EXPECT_EQ(worker.model.prompt_rows(), 40u);
}

TEST(SchedulerReuseUncut, TheEndOfAPromptAndTheEndOfAnAnswerAreKept) {
  FakeWorker worker(uncut_streams(4));
  worker.add(1, {.prompt = 60, .max_tokens = 12, .shared = 60});
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.reuse().cache_stats().entries, 2u);
  worker.add_turn(2, 1, 10, 5);
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2), 71);
  worker.add(3, {.prompt = 80, .max_tokens = 5, .shared = 60});  // another answer, or none
  worker.run_to_end();
  EXPECT_EQ(worker.cached(3), 60);
}

TEST(SchedulerReuseUncut, APartOfASnapshotIsOfNoUse) {
  FakeWorker worker(uncut_streams(4));
  worker.add(1, {.prompt = 60, .max_tokens = 5, .shared = 50});
  worker.run_to_end();
  worker.add(2, {.prompt = 60, .max_tokens = 5, .shared = 50});
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2), 0);
}

TEST(SchedulerReuseUncut, WhatIsKeptIsNotCopiedAgain) {
  FakeWorker worker(uncut_streams(4));
  for (const std::uint64_t id : {1, 2, 3}) {
    worker.add(id, {.prompt = 60, .max_tokens = 12, .shared = 60});
    worker.run_to_end();
  }
  EXPECT_EQ(worker.model.saves(), 2u) << "the prompt and the answer of the first";
}

TEST(SchedulerReuseUncut, APromptThatBeginsWithAnotherWholePromptWaitsForIt) {
  FakeWorker worker(uncut_streams(4));
  worker.add(1, {.prompt = 60, .max_tokens = 50, .shared = 60});
  for (const std::uint64_t id : {2, 3}) worker.add(id, {.prompt = 80, .max_tokens = 3, .shared = 60});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 1u);
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2), 60);
  EXPECT_EQ(worker.cached(3), 60);
  EXPECT_EQ(worker.model.prompt_rows(), 60u + 2 * 20);
}

TEST(SchedulerReuseUncut, NoRequestWaitsForOneThatHasGoneOnBeyondItsPrompt) {
  FakeWorker worker(uncut_streams(4));
  worker.model.saves_to_fail = 1;  // the end of its prompt is lost
  worker.add(1, {.prompt = 60, .max_tokens = 50, .shared = 60});
  while (worker.of(1).tokens < 5) ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 80, .max_tokens = 3, .shared = 60});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 2u);
  worker.run_to_end();
}

TEST(SchedulerCheckpoints, AreWhereAnotherChatGoesOnThatBeginsAlike) {
  FakeWorker worker(uncut_streams(4));
  worker.checkpoint_every = 4096;
  worker.add(1, {.prompt = 200, .max_tokens = 5, .shared = 150, .boundaries = {150, 195}});
  worker.run_to_end();
  worker.add(2, {.prompt = 220, .max_tokens = 5, .shared = 150, .boundaries = {150, 215}});
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2), 150) << "the end of what they share";
}

TEST(SchedulerCheckpoints, AreWhereTheSameChatIsAnsweredAgain) {
  FakeWorker worker(uncut_streams(4));
  worker.checkpoint_every = 4096;
  for (const std::uint64_t id : {1, 2}) {
    worker.add(id, {.prompt = 200, .max_tokens = 5, .shared = 200, .boundaries = {100, 196}});
    worker.run_to_end();
  }
  EXPECT_EQ(worker.cached(2), 196);
}

TEST(SchedulerCheckpoints, OfALongPromptAreInTheMiddleToo) {
  FakeWorker worker(uncut_streams(4));
  worker.checkpoint_every = 100;
  worker.add(1, {.prompt = 350, .max_tokens = 5, .shared = 260});
  worker.run_to_end();
  worker.add(2, {.prompt = 350, .max_tokens = 5, .shared = 260});
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2), 200);
}

TEST(SchedulerCheckpoints, OfWhoIsReadingAreWaitedFor) {
  FakeWorker worker(uncut_streams(4));
  worker.checkpoint_every = 4096;
  worker.add(1, {.prompt = 200, .max_tokens = 5, .shared = 150, .boundaries = {150}});
  for (const std::uint64_t id : {2, 3}) {
    worker.add(id, {.prompt = 200, .max_tokens = 5, .shared = 150, .boundaries = {150}});
  }
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2), 150);
  EXPECT_EQ(worker.cached(3), 150);
  EXPECT_EQ(worker.model.prompt_rows(), 200u + 2 * 50);
}

TEST(SchedulerCheckpoints, CostNothingWhereKvCanBeCut) {
  FakeWorker worker(cached_slots(4));
  worker.add(1, {.prompt = 200, .max_tokens = 1, .boundaries = {150}});
  EXPECT_TRUE(worker.of(1).request->checkpoints.empty());
  worker.run_to_end();
}

}  // namespace
}  // namespace chasqui
