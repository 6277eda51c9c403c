#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

using Parts = std::vector<std::pair<std::uint64_t, TokenCount>>;

SchedulerConfig streams(std::int32_t slots = 4, TokenCount rows_max = 32) {
  return {{slots, slots * 100, 100, false}, rows_max, milliseconds(100)};
}

SchedulerConfig one_pool(std::int32_t slots = 4, TokenCount cells = 100) {
  return {{slots, cells, cells, true}, 32, milliseconds(100)};
}

RequestPtr of_class(std::uint64_t id, ServiceClass service_class, TokenCount prompt = 10) {
  RequestDraft draft;
  draft.prompt = test_prompt(prompt, id);
  draft.max_tokens = 3;
  draft.service_class = service_class;
  return test_request(id, std::move(draft));
}

RequestPtr with_timeout(std::uint64_t id, TokenCount prompt, std::int64_t timeout_ms, TimePoint now) {
  RequestDraft draft;
  draft.prompt = test_prompt(prompt, id);
  draft.timeout_ms = timeout_ms;
  return test_request(id, std::move(draft), test_limits(), now);
}

TEST(Scheduler, HasNothingToDoAtFirst) {
  FakeWorker worker(streams());
  EXPECT_TRUE(worker.scheduler.idle());
  EXPECT_FALSE(worker.step());
  EXPECT_TRUE(worker.outcomes.empty());
}

TEST(Scheduler, ReadsAPromptThenSaysTokensUntilTheLimit) {
  FakeWorker worker(streams());
  const RequestPtr request = worker.add(1, 10, 4);
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
  EXPECT_EQ(worker.of(1).text, fake_answer(request->prompt, 4, {}));
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

TEST(Scheduler, PromptsShareABatchAndTheFirstComersAreReadFirst) {
  FakeWorker worker(streams(4, 32));
  worker.add(1, 20, 5);
  worker.add(2, 20, 5);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 20}, {2, 12}}));
}

TEST(Scheduler, DecodeAndPrefillTakeTurnsWhileBothAreThere) {
  FakeWorker worker(streams());
  worker.add(1, 10, 50);
  ASSERT_TRUE(worker.step());
  worker.row_cost = milliseconds(10);
  worker.add(2, 90, 5);
  bool decoded_before = false;
  while (worker.of(2).tokens == 0) {
    ASSERT_TRUE(worker.step());
    EXPECT_NE(worker.decoded(), decoded_before);
    decoded_before = worker.decoded();
  }
  // 90 rows in chunks of at most 32, each followed or led by a token of the running stream.
  EXPECT_GE(worker.of(1).tokens, 1 + 2);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 1}, {2, 1}})) << "every decoding sequence is in every decode batch";
}

TEST(Scheduler, AChunkIsNoLongerThanARunningStreamCanStand) {
  SchedulerConfig config = streams(2, 512);
  config.kv = {2, 2000, 1000, false};
  FakeWorker worker(config);
  RequestLimits limits = test_limits();
  limits.context = 1000;
  const auto longer = [&](std::uint64_t id) {
    RequestDraft draft;
    draft.prompt = test_prompt(600, id);
    return test_request(id, std::move(draft), limits);
  };
  worker.row_cost = milliseconds(2);
  worker.add(longer(1));
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 512}})) << "nobody waits yet";
  ASSERT_TRUE(worker.step());
  worker.add(longer(2));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(worker.step());
    if (worker.decoded()) continue;
    EXPECT_EQ(worker.parts, (Parts{{2, 50}})) << "100 ms at 2 ms a row";
  }
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
    const RequestPtr request = worker.add(id, 30, 5);
    worker.run_to_end();
    EXPECT_EQ(worker.of(id).text, fake_answer(request->prompt, 5, {})) << id;
  }
}

TEST(Scheduler, ACancelEndsARequestInEveryPhase) {
  FakeWorker worker(streams(2));
  worker.add(1, 10, 50);
  ASSERT_TRUE(worker.step());
  worker.add(2, 90, 50);
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

TEST(Scheduler, ACancelMayComeTooLateOrForNobody) {
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
  FakeWorker worker(streams(2));
  worker.row_cost = milliseconds(1);
  worker.add(with_timeout(1, 10, 60, worker.clock.now()));  // decoding when its time comes
  ASSERT_TRUE(worker.step());
  worker.add(with_timeout(2, 90, 40, worker.clock.now()));  // prefilling
  worker.add(with_timeout(3, 10, 40, worker.clock.now()));  // waiting
  worker.run_to_end();
  for (const std::uint64_t id : {1, 2, 3}) EXPECT_EQ(worker.reason(id), FinishReason::deadline) << id;
  EXPECT_GT(worker.of(1).tokens, 1);
  EXPECT_EQ(worker.of(2).tokens, 0);
  EXPECT_EQ(worker.of(3).tokens, 0);
  EXPECT_EQ(worker.of(3).last.usage.prefill, Duration::zero());
  EXPECT_TRUE(worker.scheduler.idle());
}

TEST(Scheduler, ADeadlineIsOverWhenItIsReached) {
  FakeWorker worker(streams());
  worker.add(with_timeout(1, 10, 5, worker.clock.now()));
  worker.clock.advance(milliseconds(5) - Duration(1));
  ASSERT_TRUE(worker.step());
  FakeWorker late(streams());
  late.add(with_timeout(1, 10, 5, late.clock.now()));
  late.clock.advance(milliseconds(5));
  EXPECT_FALSE(late.step());
  EXPECT_EQ(late.reason(1), FinishReason::deadline);
}

TEST(Scheduler, AllWhoseTimeIsUpEndBeforeTheNextStep) {
  FakeWorker worker(streams(2));
  for (std::uint64_t id = 1; id <= 6; ++id) worker.add(with_timeout(id, 10, 20, worker.clock.now()));
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
  const RequestPtr third = worker.add(3, 20, 5);
  ASSERT_TRUE(worker.step());
  ASSERT_TRUE(worker.decoded());
  ASSERT_TRUE(worker.step(DecodeStatus::failed));
  ASSERT_FALSE(worker.decoded());
  EXPECT_EQ(worker.reason(2), FinishReason::error);
  EXPECT_EQ(worker.of(2).last.error.code, ErrorCode::model_failure);
  EXPECT_FALSE(worker.of(2).last.error.message.empty());
  EXPECT_FALSE(worker.finished(1));
  EXPECT_FALSE(worker.finished(3));

  worker.cancel(1);
  worker.run_to_end();
  EXPECT_EQ(worker.of(3).text, fake_answer(third->prompt, 5, {})) << "the slot of the failed one works";
}

TEST(Scheduler, AFailedDecodeBatchSparesThosePrefilling) {
  FakeWorker worker(streams(3));
  worker.add(1, 10, 50);
  worker.add(2, 10, 50);
  ASSERT_TRUE(worker.step());
  const RequestPtr third = worker.add(3, 70, 5);
  ASSERT_TRUE(worker.step(DecodeStatus::no_room));
  ASSERT_TRUE(worker.decoded());
  EXPECT_EQ(worker.reason(1), FinishReason::error);
  EXPECT_EQ(worker.reason(2), FinishReason::error);
  worker.run_to_end();
  EXPECT_EQ(worker.of(3).text, fake_answer(third->prompt, 5, {}));
}

TEST(Scheduler, AnAbortedStepIsDoneAgain) {
  FakeWorker worker(streams());
  const RequestPtr request = worker.add(1, 50, 5);
  for (int i = 0; worker.step(i % 2 == 0 ? DecodeStatus::aborted : DecodeStatus::ok); ++i) ASSERT_LT(i, 100);
  EXPECT_EQ(worker.reason(1), FinishReason::length);
  EXPECT_EQ(worker.of(1).text, fake_answer(request->prompt, 5, {}));
}

TEST(Scheduler, UrgentClassesStartFirstAndWithinAClassTheFirstComer) {
  FakeWorker worker(streams(1));
  worker.add(of_class(1, ServiceClass::background));
  worker.add(of_class(2, ServiceClass::standard));
  worker.add(of_class(3, ServiceClass::standard));
  worker.add(of_class(4, ServiceClass::interactive));
  std::vector<std::uint64_t> order;
  while (worker.step()) {
    if (!worker.decoded()) order.push_back(worker.parts.front().first);
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{4, 2, 3, 1}));
}

TEST(Scheduler, UrgentClassesAreReadFirst) {
  FakeWorker worker(streams(2, 32));
  worker.add(of_class(1, ServiceClass::background, 90));
  ASSERT_TRUE(worker.step());
  worker.add(of_class(2, ServiceClass::interactive, 32));
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{2, 32}}));
}

TEST(Scheduler, InOnePoolNobodyStartsWhoMightNotFinish) {
  FakeWorker worker(one_pool(4, 100));
  const RequestPtr first = worker.add(1, 30, 31);   // 60 cells
  const RequestPtr second = worker.add(2, 30, 31);  // 60 cells: has to wait
  const RequestPtr third = worker.add(3, 10, 5);    // would fit, but it is not its turn
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 1u);
  EXPECT_EQ(worker.scheduler.waiting(), 2u);
  while (!worker.finished(1)) ASSERT_TRUE(worker.step());
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 2u);
  worker.run_to_end();
  EXPECT_EQ(worker.of(1).text, fake_answer(first->prompt, 31, {}));
  EXPECT_EQ(worker.of(2).text, fake_answer(second->prompt, 31, {}));
  EXPECT_EQ(worker.of(3).text, fake_answer(third->prompt, 5, {}));
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

TEST(SchedulerDeathTest, NeedsARowForEverySlot) {
  EXPECT_DEATH(Scheduler(streams(8, 7)), "a decode batch must hold one row for each slot");
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
