#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

using Parts = FakeWorker::Parts;

TEST(Scheduler, HasNothingToDoAtFirst) {
  FakeWorker worker(streams());
  EXPECT_TRUE(worker.scheduler.idle());
  EXPECT_FALSE(worker.step());
  EXPECT_TRUE(worker.outcomes.empty());
}

TEST(Scheduler, ReadsAPromptThenSaysTokensUntilTheLimit) {
  FakeWorker worker(streams());
  worker.add(1, 10, 4);
  EXPECT_FALSE(worker.scheduler.idle());
  ASSERT_TRUE(worker.step());
  EXPECT_FALSE(worker.decoded());
  EXPECT_EQ(worker.of(1).tokens, 1) << "the first token comes from the last row of the prompt";
  for (int token = 2; token <= 4; ++token) {
    EXPECT_FALSE(worker.finished(1));
    ASSERT_TRUE(worker.step());
    EXPECT_TRUE(worker.decoded());
    EXPECT_EQ(worker.of(1).tokens, token);
  }
  EXPECT_EQ(worker.reason(1), FinishReason::length);
  EXPECT_FALSE(worker.of(1).text.empty());
  EXPECT_FALSE(worker.step());
  EXPECT_TRUE(worker.scheduler.idle());
  EXPECT_EQ(worker.scheduler.ledger().slots_used(), 0);
}

TEST(Scheduler, CutsALongPromptAndTheFirstTokenComesAfterTheLastChunkOnly) {
  FakeWorker worker(streams(4, 32));
  worker.add(1, 70, 2);
  for (const TokenCount rows : {32, 32, 6}) {
    EXPECT_EQ(worker.of(1).tokens, 0);
    ASSERT_TRUE(worker.step());
    EXPECT_EQ(worker.parts, (Parts{{1, rows}}));
  }
  EXPECT_EQ(worker.of(1).tokens, 1);
}

TEST(Scheduler, ShortPromptsShareABatchAndTheFirstComersAreReadFirst) {
  FakeWorker worker(streams(4, 32));
  worker.add(1, 20, 5);
  worker.add(2, 20, 5);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 20}, {2, 12}}));
}

TEST(Scheduler, EveryDecodingSequenceIsInEveryDecodeBatchWhileTheStepIsShort) {
  FakeWorker worker(streams());
  for (std::uint64_t id = 1; id <= 4; ++id) {
    worker.add(id, {.max_tokens = 20, .service_class = static_cast<ServiceClass>(id % 3)});
  }
  while (worker.of(2).tokens == 0) ASSERT_TRUE(worker.step());  // background comes last
  ASSERT_TRUE(worker.step());
  EXPECT_TRUE(worker.decoded());
  EXPECT_EQ(worker.parts.size(), 4u);
  worker.run_to_end();
}

TEST(Scheduler, AskedForNoTokensItReadsThePromptAndSaysNothing) {
  FakeWorker worker(streams());
  worker.add(1, 40, 0);
  ASSERT_TRUE(worker.step());
  EXPECT_FALSE(worker.finished(1));
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.reason(1), FinishReason::length);
  EXPECT_EQ(worker.of(1).tokens, 0);
  EXPECT_EQ(worker.of(1).last.usage.prompt, 40);
  EXPECT_TRUE(worker.scheduler.idle());
}

TEST(Scheduler, EndsAtTheEndOfGenerationTokenOrAStopString) {
  FakeWorker worker(streams());
  worker.add(1, 10, 50, {.end_after = 3});
  worker.add(2, 10, 50, {.stop_after = 2});
  worker.add(3, 10, 50, {.end_after = 1});
  worker.run_to_end();
  EXPECT_EQ(worker.reason(1), FinishReason::stop);
  EXPECT_EQ(worker.of(1).tokens, 3) << "the token that ends it is counted";
  EXPECT_EQ(worker.of(1).last.stop_string, "");
  EXPECT_EQ(worker.reason(2), FinishReason::stop);
  EXPECT_EQ(worker.of(2).tokens, 2);
  EXPECT_EQ(worker.of(2).last.stop_string, "STOP");
  EXPECT_EQ(worker.reason(3), FinishReason::stop);
  EXPECT_EQ(worker.of(3).tokens, 1);
}

TEST(Scheduler, ATokenThatEndsAnAnswerAtItsLimitIsAStop) {
  FakeWorker worker(streams());
  worker.add(1, 10, 3, {.end_after = 3});
  worker.run_to_end();
  EXPECT_EQ(worker.reason(1), FinishReason::stop);
}

TEST(Scheduler, AReusedSlotIsTrimmedAndTheNextAnswerIsIntact) {
  FakeWorker worker(streams(1));
  for (std::uint64_t id = 1; id <= 5; ++id) {
    worker.add(id, 30, 5);
    worker.run_to_end();
    EXPECT_EQ(worker.reason(id), FinishReason::length);
    EXPECT_EQ(worker.of(id).tokens, 5);
  }
}

TEST(Scheduler, ACancelEndsARequestInEveryPhase) {
  FakeWorker worker(streams(2, 32, 1000));
  worker.add(1, 10, 50);
  ASSERT_TRUE(worker.step());
  worker.add(2, 900, 50);
  while (worker.decoded() || worker.of(1).tokens < 2) ASSERT_TRUE(worker.step());  // 2 is between two chunks
  worker.add(3, 10, 50);
  ASSERT_TRUE(worker.step());
  ASSERT_GT(worker.of(1).tokens, 0);
  ASSERT_EQ(worker.of(2).tokens, 0);
  ASSERT_EQ(worker.scheduler.waiting(), 1u);

  worker.cancel(3);
  EXPECT_EQ(worker.reason(3), FinishReason::cancelled);
  EXPECT_EQ(worker.scheduler.waiting(), 0u);
  worker.cancel(2);
  EXPECT_EQ(worker.reason(2), FinishReason::cancelled);
  worker.cancel(1);
  EXPECT_EQ(worker.reason(1), FinishReason::cancelled);
  EXPECT_TRUE(worker.scheduler.idle());
  EXPECT_EQ(worker.scheduler.ledger().cells_used(), 0);
  EXPECT_FALSE(worker.step()) << "a cancelled request costs no further step";

  worker.add(4, 30, 5);
  worker.add(5, 30, 5);
  worker.run_to_end();
  EXPECT_EQ(worker.reason(4), FinishReason::length);
  EXPECT_EQ(worker.reason(5), FinishReason::length);
}

TEST(Scheduler, ACancelMayComeTooLateOrForNoRequest) {
  FakeWorker worker(streams());
  worker.add(1, 10, 1);
  worker.run_to_end();
  worker.cancel(1);
  worker.cancel(99);
  EXPECT_EQ(worker.of(1).finished, 1);
  EXPECT_EQ(worker.outcomes.count(RequestId{99}), 0u);
}

TEST(Scheduler, CancelAllLeavesNothing) {
  FakeWorker worker(streams(2));
  for (std::uint64_t id = 1; id <= 5; ++id) worker.add(id, 40, 50);
  ASSERT_TRUE(worker.step());
  worker.scheduler.cancel_all(worker.clock.now());
  worker.take_events();
  for (std::uint64_t id = 1; id <= 5; ++id) EXPECT_EQ(worker.reason(id), FinishReason::cancelled);
  EXPECT_TRUE(worker.scheduler.idle());
  EXPECT_TRUE(worker.scheduler.consistent());
}

TEST(Scheduler, ADeadlineEndsARequestInEveryPhase) {
  FakeWorker worker(streams(2, 32, 1000));
  worker.add(1, {.prompt = 10, .max_tokens = -1, .timeout_ms = 500});  // decoding when its time comes
  ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 900, .max_tokens = -1, .timeout_ms = 300});  // prefilling
  ASSERT_TRUE(worker.step());
  worker.add(3, {.prompt = 10, .max_tokens = -1, .timeout_ms = 100});  // waiting
  worker.run_to_end();
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_EQ(worker.reason(id), FinishReason::deadline) << id;
  EXPECT_GT(worker.of(1).tokens, 1);
  EXPECT_EQ(worker.of(2).tokens, 0);
  EXPECT_EQ(worker.of(3).tokens, 0);
  EXPECT_EQ(worker.of(3).last.usage.prefill, Duration::zero());
  EXPECT_TRUE(worker.scheduler.idle());
}

TEST(Scheduler, WhatGetsNoFirstTokenInTimeFails) {
  FakeWorker worker(streams(1, 32, 1000));
  worker.add(1, {.prompt = 900, .max_tokens = 40, .ttft_ms = 1});  // reading its prompt when its time comes
  worker.add(2, {.prompt = 10, .max_tokens = 1, .ttft_ms = 1});    // waiting
  worker.run_to_end();
  for (const std::uint64_t id : {1, 2}) {
    EXPECT_EQ(worker.reason(id), FinishReason::error) << id;
    EXPECT_EQ(worker.of(id).last.error.code, ErrorCode::overloaded);
    EXPECT_GE(worker.of(id).last.error.retry_after, seconds(1));
  }
  worker.add(3, {.prompt = 10, .max_tokens = 40, .ttft_ms = 1000});
  worker.run_to_end();
  EXPECT_EQ(worker.reason(3), FinishReason::length);
}

TEST(Scheduler, ADeadlineIsOverWhenItIsReached) {
  FakeWorker worker(streams());
  worker.add(1, {.max_tokens = -1, .timeout_ms = 5});
  worker.clock.advance(milliseconds(5) - Duration(1));
  ASSERT_TRUE(worker.step());
  FakeWorker late(streams());
  late.add(1, {.max_tokens = -1, .timeout_ms = 5});
  late.clock.advance(milliseconds(5));
  EXPECT_FALSE(late.step());
  EXPECT_EQ(late.reason(1), FinishReason::deadline);
}

TEST(Scheduler, AllWhoseTimeIsUpEndBeforeTheNextStep) {
  FakeWorker worker(streams(2));
  for (std::uint64_t id = 1; id <= 6; ++id) worker.add(id, {.max_tokens = -1, .timeout_ms = 20});
  ASSERT_TRUE(worker.step());  // 1 and 2 hold the slots
  worker.clock.advance(milliseconds(20) - worker.clock.now().time_since_epoch());
  EXPECT_FALSE(worker.step());
  for (std::uint64_t id = 1; id <= 6; ++id) EXPECT_EQ(worker.reason(id), FinishReason::deadline) << id;
}

TEST(Scheduler, AFailedDecodeEndsTheRequestsOfItsBatchOnly) {
  FakeWorker worker(streams(2));
  worker.add(1, 10, 50);
  ASSERT_TRUE(worker.step());
  worker.add(2, 20, 5);
  worker.add(3, 20, 5);
  ASSERT_TRUE(worker.step(DecodeStatus::failed));
  ASSERT_FALSE(worker.decoded());
  EXPECT_EQ(worker.reason(2), FinishReason::error);
  EXPECT_EQ(worker.of(2).last.error.code, ErrorCode::model_failure);
  EXPECT_FALSE(worker.of(2).last.error.message.empty());
  EXPECT_FALSE(worker.finished(1));
  EXPECT_FALSE(worker.finished(3));

  worker.cancel(1);
  worker.run_to_end();
  EXPECT_EQ(worker.of(3).tokens, 5) << "the slot of the failed one works";
}

TEST(Scheduler, AFailedDecodeBatchSparesThosePrefilling) {
  FakeWorker worker(streams(3));
  worker.add(1, 10, 50);
  worker.add(2, 10, 50);
  ASSERT_TRUE(worker.step());
  worker.add(3, 70, 5);
  ASSERT_TRUE(worker.step());
  worker.clock.advance(milliseconds(200));  // the streams have no time for a second chunk
  ASSERT_TRUE(worker.step(DecodeStatus::no_room));
  ASSERT_TRUE(worker.decoded());
  EXPECT_EQ(worker.reason(1), FinishReason::error);
  EXPECT_EQ(worker.reason(2), FinishReason::error);
  worker.run_to_end();
  EXPECT_EQ(worker.of(3).tokens, 5);
}

TEST(Scheduler, AnAbortedStepIsDoneAgain) {
  FakeWorker worker(streams());
  worker.add(1, 50, 5);
  for (int i = 0; worker.step(i % 2 == 0 ? DecodeStatus::aborted : DecodeStatus::ok); ++i) ASSERT_LT(i, 100);
  EXPECT_EQ(worker.reason(1), FinishReason::length);
  EXPECT_EQ(worker.of(1).tokens, 5);
}

TEST(Scheduler, UsageTellsWhereTheTimeWent) {
  FakeWorker worker(streams(1));
  worker.row_cost = milliseconds(1);
  worker.add(1, 10, 3);
  worker.add(2, 20, 2);
  worker.run_to_end();
  EXPECT_EQ(worker.of(1).last.usage.queue, Duration::zero());
  EXPECT_EQ(worker.of(1).last.usage.prefill, milliseconds(10));
  EXPECT_EQ(worker.of(1).last.usage.decode, milliseconds(2));
  EXPECT_EQ(worker.of(2).last.usage.queue, milliseconds(12));
  EXPECT_EQ(worker.of(2).last.usage.prefill, milliseconds(20));
  EXPECT_EQ(worker.of(2).last.usage.decode, milliseconds(1));
}

TEST(Scheduler, ThoseWhoWaitAreToldAboutOnceASecondWhereTheyStand) {
  FakeWorker worker(streams(1));
  worker.row_cost = milliseconds(100);
  worker.add(1, 10, 60);  // about 7 s
  worker.add(2, 10, 1);
  worker.add(3, 10, 1);
  worker.run_until_finished(1);
  EXPECT_TRUE(worker.of(1).queued.empty());
  for (const std::uint64_t id : {2, 3}) {
    ASSERT_GE(worker.of(id).queued.size(), 4u);
    EXPECT_LE(worker.of(id).queued.size(), 8u);
    for (const Event& event : worker.of(id).queued) {
      EXPECT_EQ(event.position, static_cast<std::int32_t>(id) - 2) << "requests that go before it";
      EXPECT_EQ(event.service_class, ServiceClass::standard);
      EXPECT_EQ(event.tokens, 0);
    }
  }
  worker.run_to_end();
}

TEST(Scheduler, TheWaitThatIsPredictedFollowsHowLongSlotsAreHeld) {
  FakeWorker worker(streams(2));
  worker.row_cost = milliseconds(100);
  for (std::uint64_t id = 1; id <= 8; ++id) worker.add(id, 10, 11);
  worker.run_until_finished(4);
  const Load load = worker.scheduler.load();
  EXPECT_GT(load.slot_time, seconds(1));
  EXPECT_LT(load.slot_time, seconds(10));
  while (worker.of(8).queued.empty() || worker.of(8).queued.back().wait == Duration::zero()) ASSERT_TRUE(worker.step());
  ASSERT_FALSE(worker.of(7).queued.empty());
  EXPECT_GT(worker.of(8).queued.back().wait, worker.of(7).queued.back().wait) << "further back, longer";
}

TEST(Scheduler, TellsItsLoad) {
  FakeWorker worker(streams(2));
  Load load = worker.scheduler.load();
  EXPECT_EQ(load.slots, 2);
  EXPECT_EQ(load.running, 0);
  EXPECT_EQ(load.slot_time, Duration::zero());
  worker.add(1, 10, 5);
  worker.add(2, 10, 5);
  worker.run_to_end();
  EXPECT_GT(worker.scheduler.load().slot_time, Duration::zero());
  EXPECT_EQ(worker.scheduler.load().wait.of_short[1], Duration::zero()) << "slots are free";

  const TimePoint third_and_fourth = worker.clock.now();
  worker.add(3, {.max_tokens = 50, .service_class = ServiceClass::interactive});
  worker.add(4, {.max_tokens = 50, .service_class = ServiceClass::interactive});
  worker.step();
  worker.add(5, {.prompt = 30, .service_class = ServiceClass::interactive});
  worker.add(6, {.prompt = 20, .service_class = ServiceClass::background});
  worker.add(7, {.prompt = 10, .service_class = ServiceClass::background});
  worker.step();
  load = worker.scheduler.load();
  EXPECT_EQ(load.running, 2);
  EXPECT_EQ(load.running_since, third_and_fourth);
  EXPECT_EQ(load.waiting, (std::array<std::int32_t, kServiceClasses>{1, 0, 2}));
  EXPECT_EQ(load.waiting_tokens, 60);
  EXPECT_EQ(load.tokens_to_prefill, 60) << "those that run have read theirs";
  ASSERT_EQ(load.tenants, 1) << "all are one tenant's";
  const auto& wait = load.of_tenants[0].wait.of_short;
  EXPECT_GT(wait[0], Duration::zero());
  EXPECT_GE(wait[1], wait[0]);
  EXPECT_GT(wait[2], wait[1]);
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.load().waiting_tokens, 0);
  EXPECT_EQ(worker.scheduler.load().tokens_to_prefill, 0);
}

TEST(Scheduler, WhatIsLeftOfARunningPromptIsUnreadAndNotWaiting) {
  FakeWorker worker(streams(1));
  EXPECT_EQ(worker.scheduler.load().row_time, Duration::zero()) << "nothing was read yet";
  worker.add(1, 90, 5);
  EXPECT_EQ(worker.scheduler.load().tokens_to_prefill, 90);
  while (worker.scheduler.load().tokens_to_prefill == 90) ASSERT_TRUE(worker.step());
  const Load load = worker.scheduler.load();
  EXPECT_EQ(load.waiting_tokens, 0);
  EXPECT_LT(load.tokens_to_prefill, 90);
  EXPECT_GT(load.row_time, Duration::zero());
  worker.run_to_end();
}

// The wait of the first ones was unknown, and what they waited is no excess over that.
TEST(Scheduler, ABurstAtTheBeginningKeepsNoRequestOutAfterIt) {
  for (const bool at_once : {true, false}) {
    FakeWorker worker(streams(16));
    worker.row_cost = milliseconds(20);
    worker.decode_row_cost = milliseconds(1);
    for (std::uint64_t id = 1; id <= 12; ++id) {
      worker.add(id, 40, 50);
      if (id == 1 && !at_once) worker.step();
    }
    while (worker.scheduler.load().tokens_to_prefill > 0) ASSERT_TRUE(worker.step());
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(worker.step());
    EXPECT_GT(worker.clock.now() - worker.of(1).request->arrival, seconds(5));
    EXPECT_LT(worker.scheduler.load().wait.of_short[1], seconds(2)) << "a slot is free, and everything is read";
    worker.run_to_end();
  }
}

TEST(SchedulerDeathTest, ABatchMustBeCommittedBeforeItsSequencesLeave) {
  FakeWorker worker(streams());
  worker.add(1, 10, 5);
  worker.scheduler.next_batch(worker.clock.now(), worker.batch);
  const RequestPtr alive = test_request(1, 10, 5);
  worker.model.run(worker.batch, DecodeStatus::ok, worker.result);
  for (BatchPart& part : worker.batch.parts) part.request = alive.get();
  worker.scheduler.cancel(RequestId{1}, worker.clock.now());
  EXPECT_DEATH(worker.scheduler.commit(worker.batch, worker.result), "left between next_batch");
  worker.result.status = DecodeStatus::failed;
  EXPECT_DEATH(worker.scheduler.commit(worker.batch, worker.result), "left between next_batch");
}

}  // namespace
}  // namespace chasqui
