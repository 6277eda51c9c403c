// Sequences whose answer another node has begun, beside others: what they are told, what they pay, what they find.
#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

// What the model says first.
std::vector<Token> said_before(const std::vector<Token>& prompt, TokenCount tokens) {
  std::vector<Token> history = prompt;
  for (TokenCount n = 0; n < tokens; ++n) history.push_back(fake_next(history));
  return {history.begin() + static_cast<std::ptrdiff_t>(prompt.size()), history.end()};
}

RequestDraft begun_draft(std::uint64_t salt, TokenCount prompt, TokenCount begun, std::int64_t max_tokens) {
  RequestDraft draft;
  draft.prompt = test_prompt(prompt, salt);
  draft.begun = said_before(draft.prompt, begun);
  draft.max_tokens = max_tokens;
  return draft;
}

TEST(SchedulerBegun, SaysTheRestAndNothingBefore) {
  for (TokenCount begun = 1; begun < 12; ++begun) {
    FakeWorker worker(streams());
    worker.submit(1, begun_draft(1, 10, begun, 12), {});
    worker.run_to_end();  // which compares what it says
    EXPECT_EQ(worker.of(1).tokens, 12);
    EXPECT_EQ(worker.of(1).last.usage.begun, begun);
    EXPECT_EQ(worker.of(1).last.reason, FinishReason::length);
    EXPECT_EQ(worker.model.prompt_rows(1), 10);
  }
}

TEST(SchedulerBegun, ItsFirstTokenIsTheFirstNewOne) {
  FakeWorker worker(streams());
  worker.submit(1, begun_draft(1, 10, 4, 12), {});
  std::vector<Event> events;
  while (events.empty()) {
    worker.scheduler.next_batch(worker.clock.now(), worker.batch);
    worker.model.run(worker.batch, DecodeStatus::ok, worker.result);
    worker.clock.advance(milliseconds(3));
    worker.result.finished = worker.clock.now();
    worker.scheduler.commit(worker.batch, worker.result);
    worker.scheduler.take_events(events);
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events.front().first);
  EXPECT_EQ(events.front().since_last, Duration::zero());
}

TEST(SchedulerBegun, FailsWithoutAFirstTokenInTime) {
  FakeWorker worker(streams(1));
  worker.add(1, 10, 80);
  worker.step();
  RequestDraft draft = begun_draft(2, 10, 4, 12);
  draft.ttft_ms = 10;
  worker.submit(2, std::move(draft), {});
  worker.run_to_end();
  EXPECT_EQ(worker.reason(2), FinishReason::error);
  EXPECT_EQ(worker.of(2).last.usage.completion, 4);
}

// With all, a part or nothing of both in the cache, in a slot or copied out of it.
TEST(SchedulerBegun, BeginsWithWhatIsCached) {
  for (const TokenCount kv_block : {0, 8}) {  // with blocks what it finds stays in its slot
    for (const TokenCount there : {0, 20, 40, 55}) {
      SchedulerConfig config = with_cache(streams(2));
      config.reuse.kv_block = kv_block;
      FakeWorker worker(config);
      RequestDraft before = begun_draft(1, 40, 20, 1);
      before.prompt.insert(before.prompt.end(), before.begun.begin(), before.begun.end());
      before.prompt.resize(static_cast<std::size_t>(std::max(there, 1)));
      before.begun.clear();
      if (there > 0) worker.submit(1, std::move(before), {});
      worker.run_to_end();
      worker.submit(2, begun_draft(1, 40, 20, 24), {});
      worker.run_to_end();
      EXPECT_EQ(worker.of(2).tokens, 24);
      EXPECT_EQ(worker.cached(2), std::min(there, 40)) << there;
      EXPECT_EQ(worker.model.prompt_rows(2), 40 - std::min(there, 40));
      EXPECT_EQ(worker.of(2).last.usage.steps, 4 + (there < 40 ? 1 : 0)) << there;
    }
  }
}

TEST(SchedulerBegun, GoesOnAfterItHasLostItsSlot) {
  FakeWorker worker(one_pool(4, 100));
  for (std::uint64_t id = 1; id <= 4; ++id) {
    worker.submit(id, begun_draft(id, 10, static_cast<TokenCount>(4 * id), 60), {});
  }
  worker.run_to_end();
  EXPECT_GT(worker.scheduler.preemptions(), 0u);
  for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(worker.of(id).tokens, 60);
}

TEST(SchedulerBegun, IsShiftedWhereTheWholeAnswerWouldBe) {
  FakeWorker worker(streams(1, 32, 50));
  worker.shifts = true;
  worker.submit(1, begun_draft(1, 20, 15, 80), {});
  worker.run_to_end();
  EXPECT_EQ(worker.of(1).tokens, 80);
  EXPECT_GT(worker.model.shifts(), 0u);
}

TEST(SchedulerBegun, TellsNoProgressOfAPromptThatWasReadBefore) {
  FakeWorker worker(streams());
  RequestDraft draft = begun_draft(1, 60, 4, 12);
  draft.tell_progress = true;
  worker.submit(1, std::move(draft), {});
  worker.run_to_end();
  EXPECT_TRUE(worker.of(1).read.empty());
}

TEST(SchedulerBegun, ThatHasEndedIsStoppedBeforeItStarts) {
  FakeWorker worker(streams());
  worker.submit(1, begun_draft(1, 10, 4, 12), {});
  worker.scheduler.cancel(RequestId{1}, worker.clock.now(), FinishReason::stop);
  worker.take_events();
  EXPECT_EQ(worker.reason(1), FinishReason::stop);
  EXPECT_TRUE(worker.scheduler.idle());
}

}  // namespace
}  // namespace chasqui
