// Context shift: answers that are longer than their slots, and what of them others may begin with.
#include <string>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

SchedulerConfig short_slots(std::int32_t slots = 2) {
  SchedulerConfig config = with_cache(streams(slots, 32, 100));
  config.reuse.kv_block = 8;
  config.reuse.kv_token_bytes = sizeof(FakeToken);
  return config;
}

class SchedulerShift : public testing::Test {
 protected:
  SchedulerShift() { worker_.shifts = true; }
  FakeWorker worker_{short_slots()};
};

TEST_F(SchedulerShift, AnAnswerGoesOnWhereItsContextIsFull) {
  worker_.add(1, {.prompt = 40, .max_tokens = 500});
  worker_.run_to_end();
  EXPECT_EQ(worker_.of(1).tokens, 500);
  EXPECT_EQ(worker_.reason(1), FinishReason::length);
  EXPECT_GT(worker_.model.shifts(), 5u);
  EXPECT_EQ(worker_.model.prompt_rows(1), 40) << "nothing is computed again";
  EXPECT_TRUE(worker_.of(1).last.usage.truncated);
  EXPECT_EQ(worker_.of(1).last.usage.prompt, 40);
}

TEST_F(SchedulerShift, WithoutItAnAnswerEndsThereAndSaysSo) {
  worker_.shifts = false;
  worker_.add(1, {.prompt = 40, .max_tokens = 500});
  worker_.add(2, {.prompt = 40, .max_tokens = 60});
  worker_.run_to_end();
  EXPECT_EQ(worker_.of(1).tokens, 60);
  EXPECT_TRUE(worker_.of(1).last.usage.truncated);
  EXPECT_FALSE(worker_.of(2).last.usage.truncated) << "it is as long as was asked for";
}

TEST_F(SchedulerShift, WhatIsKeptAndWhatGoesIsTheRequestsChoice) {
  worker_.add(1, {.prompt = 40, .max_tokens = 200, .keep = -1, .discard = 7});
  worker_.run_to_end();
  EXPECT_EQ(worker_.of(1).request->keep, 40);
  EXPECT_EQ(worker_.model.shifts(), (200u - 60) / 7);
  worker_.add(2, {.prompt = 40, .max_tokens = 70, .keep = 1000});
  worker_.run_to_end();
  EXPECT_EQ(worker_.of(2).request->keep, 96) << "a few tokens of each context are not kept";
  EXPECT_EQ(worker_.of(2).tokens, 70);
}

// FakeModel finds positions that are used again though they were computed beside what is gone.
TEST_F(SchedulerShift, NothingThatWasShiftedIsAPrefix) {
  worker_.add(1, {.prompt = 60, .max_tokens = 90, .keep = 20});
  worker_.run_to_end();
  ASSERT_GT(worker_.model.shifts(), 0u);
  RequestDraft draft;
  draft.prompt = worker_.of(1).request->prompt;
  draft.max_tokens = 3;
  worker_.submit(2, draft, {});
  worker_.run_to_end();
  EXPECT_EQ(worker_.cached(2), 20) << "what was kept is as it was computed";
}

TEST_F(SchedulerShift, WhoLosesItsSlotAfterItIsComputedAgainFromWhatItHas) {
  FakeWorker worker(short_slots(1));
  worker.shifts = true;
  worker.add(1, {.prompt = 60, .max_tokens = 90, .service_class = ServiceClass::background, .keep = 20});
  while (worker.of(1).tokens < 60) ASSERT_TRUE(worker.step());
  ASSERT_GT(worker.model.shifts(), 0u);
  worker.add(2, {.prompt = 10, .max_tokens = 3, .service_class = ServiceClass::interactive});
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
  EXPECT_EQ(worker.of(1).tokens, 90);
}

TEST_F(SchedulerShift, ThoseWhoWaitForAPromptThatIsGoneComputeItThemselves) {
  worker_.shifts = true;
  worker_.add(1, {.prompt = 80, .max_tokens = 60, .shared = 70});
  while (worker_.of(1).tokens < 10) ASSERT_TRUE(worker_.step());
  worker_.shifts = false;
  worker_.add(2, {.prompt = 80, .max_tokens = 3, .shared = 70});
  worker_.run_to_end();
  EXPECT_EQ(worker_.of(1).tokens, 60);
  EXPECT_EQ(worker_.of(2).tokens, 3);
}

TEST_F(SchedulerShift, InOnePoolOfCellsToo) {
  FakeWorker worker(with_cache(one_pool(3, 100)));
  worker.shifts = true;
  for (std::uint64_t id = 1; id <= 3; ++id) worker.add(id, {.prompt = 40, .max_tokens = 200, .keep = 10});
  worker.run_to_end();
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(worker.of(id).tokens, 200);
  EXPECT_GT(worker.model.shifts(), 5u);
}

TEST_F(SchedulerShift, DraftTokensChangeNothingOfIt) {
  SchedulerConfig config = short_slots();
  config.speculation.draft_tokens_max = 6;
  config.speculation.draft_tokens_min = 6;
  config.speculation.outputs_max = 32;
  FakeWorker worker(config);
  worker.shifts = true;
  worker.add(1, {.prompt = 40, .max_tokens = 500, .script = {.repeats = true}});
  worker.run_to_end();
  EXPECT_EQ(worker.of(1).tokens, 500);
  EXPECT_GT(worker.model.accepted_tokens(), 20u);
}

TEST_F(SchedulerShift, ForcedTokensMayFillAContext) {
  worker_.add(1, {.prompt = 40, .max_tokens = 500, .script = {.forces = true}, .keep = 30});
  worker_.add(2, {.prompt = 40, .max_tokens = 500, .script = {.forces = true}});
  worker_.run_to_end();
  EXPECT_GT(worker_.model.forced_tokens(), 20u);
  EXPECT_EQ(worker_.of(2).tokens, 500);
}

TEST_F(SchedulerShift, AStepThatIsNotComputedComputesItAgain) {
  worker_.add(1, {.prompt = 40, .max_tokens = 30});
  worker_.run_to_end();  // something to bring back
  worker_.add(2, {.prompt = 60, .max_tokens = 80});
  for (std::uint64_t id = 3; !worker_.finished(2); ++id) {
    if (worker_.of(2).tokens > 37 && id < 10) {
      RequestDraft draft;
      draft.prompt = worker_.of(1).request->prompt;
      draft.prompt.push_back(1);
      draft.max_tokens = 1;
      worker_.model.restores_to_fail = 1;
      worker_.submit(id, draft, {});
    }
    ASSERT_TRUE(worker_.step());
  }
  EXPECT_EQ(worker_.of(2).tokens, 80);
}

// One whose slot is gone reads what is left of it anew, which is not the prompt that others wait for.
TEST_F(SchedulerShift, WhatIsReadAnewIsPromisedAsFarAsItIsKept) {
  FakeWorker worker(short_slots(2));
  worker.shifts = true;
  worker.add(1, {.prompt = 90, .max_tokens = 900, .service_class = ServiceClass::background, .shared = 80, .keep = 10});
  while (worker.of(1).tokens < 60) ASSERT_TRUE(worker.step());
  ASSERT_GT(worker.model.shifts(), 0u);
  for (std::uint64_t id = 2; id <= 3; ++id) {
    worker.add(id, {.prompt = 10, .max_tokens = 5, .service_class = ServiceClass::interactive});
  }
  while (worker.scheduler.preemptions() == 0 || !worker.has_part(1)) ASSERT_TRUE(worker.step());
  const auto saves = worker.model.saves();
  worker.add(4, {.prompt = 90, .max_tokens = 3, .service_class = ServiceClass::background, .shared = 80});
  worker.run_until_finished(4);
  EXPECT_LT(worker.model.saves(), saves + 3) << "what it waits for never comes";
}

TEST_F(SchedulerShift, WhatServesNoRequestIsNotCopied) {
  FakeWorker worker(short_slots(1));
  worker.shifts = true;
  worker.add(1, {.prompt = 60, .max_tokens = 90, .keep = 20});
  worker.run_to_end();
  ASSERT_GT(worker.model.shifts(), 0u);
  worker.add(2, {.prompt = 60, .max_tokens = 3});
  worker.run_to_end();
  EXPECT_EQ(worker.model.tokens_copied_out(), 20u);
}

TEST_F(SchedulerShift, WhereNothingIsLeftToForgetAnAnswerEndsAndSaysSo) {
  worker_.add(1, {.prompt = 96, .max_tokens = 50, .script = {.forces = true}, .keep = -1});
  worker_.run_to_end();
  EXPECT_LT(worker_.of(1).tokens, 50);
  EXPECT_EQ(worker_.reason(1), FinishReason::length);
  EXPECT_TRUE(worker_.of(1).last.usage.truncated);
}

// FakeWorker looks at what heads know of those that they draft for.
TEST_F(SchedulerShift, HeadsLearnAnewBehindIt) {
  SchedulerConfig config = short_slots();
  config.speculation.draft_tokens_max = config.speculation.draft_tokens_min = 3;
  config.speculation.outputs_max = 32;
  config.speculation.draft_model = config.speculation.heads = true;
  FakeWorker worker(config);
  worker.shifts = true;
  worker.heads_cost = milliseconds(1);
  worker.heads_know = 16;
  worker.add(1, {.prompt = 40, .max_tokens = 300, .keep = 10});
  worker.run_to_end();
  EXPECT_GT(worker.model.shifts(), 3u);
  EXPECT_EQ(worker.of(1).tokens, 300);
}

class SchedulerMovedText : public testing::Test {
 protected:
  RequestPtr ask(std::uint64_t id, std::span<const Token> prompt, std::int64_t chunk) {
    RequestDraft draft;
    draft.prompt.assign(prompt.begin(), prompt.end());
    draft.max_tokens = 4;
    draft.chunk = chunk;
    RequestPtr request = worker_.submit(id, std::move(draft), {});
    worker_.run_to_end();
    return request;
  }
  FakeWorker worker_{short_slots()};
  const std::vector<Token> text_ = test_prompt(80, 7);
};

// FakeModel compares what was moved up with the prompt.
TEST_F(SchedulerMovedText, IsNotComputedAgainForWhoAsksForIt) {
  ask(1, text_, 0);
  ask(2, std::span(text_).subspan(20), 0);
  EXPECT_EQ(worker_.cached(2), 0);
  ask(3, std::span(text_).subspan(30), 16);
  EXPECT_EQ(worker_.cached(3), 49) << "all but its last token";
  EXPECT_EQ(worker_.model.moved_texts(), 1u);
}

TEST_F(SchedulerMovedText, IsNoPrefixForOthersAndIsNotMovedTwice) {
  ask(1, text_, 0);
  ask(2, std::span(text_).subspan(30), 16);
  ASSERT_EQ(worker_.cached(2), 49);
  ask(3, std::span(text_).subspan(30), 16);
  EXPECT_EQ(worker_.cached(3), 0);
  ask(4, std::span(text_).subspan(30), 0);
  EXPECT_GT(worker_.cached(4), 40) << "of the third, which computed it";
}

// The rest of another conversation, which is nowhere else, is worth more.
TEST_F(SchedulerMovedText, TakesNoSlotThatHoldsMuchElse) {
  const std::vector<Token> note(text_.begin() + 50, text_.begin() + 70);
  ask(1, text_, 0);
  ask(2, note, 16);
  EXPECT_EQ(worker_.cached(2), 0);
  ask(3, text_, 0);
  EXPECT_EQ(worker_.cached(3), 79);
}

TEST_F(SchedulerShift, SessionsAndRepeatableAnswersAreNotShifted) {
  for (std::uint64_t id = 1; id <= 2; ++id) {
    RequestDraft draft;
    draft.prompt = test_prompt(40, id);
    draft.max_tokens = 100;
    draft.pin = id == 1 ? 7 : 0;
    draft.deterministic = id == 2;
    EXPECT_EQ(worker_.submit(id, draft, {})->max_tokens, 60);
  }
  worker_.run_to_end();
}

}  // namespace
}  // namespace chasqui
