// Requests whose answer another node has begun, and their sequences.
#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "core/sequence.h"

namespace chasqui {
namespace {

using State = Sequence::State;

constexpr TimePoint after(int ms) { return TimePoint{milliseconds(ms)}; }

RequestDraft begun_draft(TokenCount prompt, std::vector<Token> begun, std::int64_t max_tokens) {
  RequestDraft draft;
  draft.prompt = test_prompt(prompt);
  draft.begun = std::move(begun);
  draft.max_tokens = max_tokens;
  return draft;
}

std::string refusal(RequestDraft draft, const RequestLimits& limits = test_limits()) {
  const auto made = make_request(RequestId{1}, std::move(draft), limits, {});
  if (made) return "";
  EXPECT_EQ(made.error().field, "begun");
  return made.error().message;
}

TEST(BegunRequest, KeepsItsTokensApartFromThePrompt) {
  const RequestPtr request = test_request(1, begun_draft(10, {5, 6, 7}, 8));
  EXPECT_EQ(request->prompt.size(), 10u);
  EXPECT_EQ(request->begun, (std::vector<Token>{5, 6, 7}));
  EXPECT_EQ(request->max_tokens, 8) << "all of the answer";
  EXPECT_EQ(request->tokens(), 13);
}

TEST(BegunRequest, IsRefusedWhereItsAnswerCannotGoOn) {
  EXPECT_NE(refusal(begun_draft(10, {5, 1000}, 8)).find("between 0 and 999"), std::string::npos);
  EXPECT_NE(refusal(begun_draft(10, {-2}, 8)).find("between 0 and 999"), std::string::npos);
  EXPECT_NE(refusal(begun_draft(10, {1, 2, 3}, 3)).find("fewer than max_tokens (3)"), std::string::npos);
  EXPECT_EQ(refusal(begun_draft(10, {1, 2}, 3)), "");
  EXPECT_NE(refusal(begun_draft(98, {1, 2}, -1)).find("room in the context of 100"), std::string::npos);
  EXPECT_EQ(refusal(begun_draft(98, {1}, -1)), "");

  RequestLimits limits = test_limits();
  limits.end_tokens = {2};
  EXPECT_NE(refusal(begun_draft(10, {1, 2}, 8), limits).find("token 2, which ends"), std::string::npos);
  RequestDraft stops = begun_draft(10, {1, 3}, 8);
  stops.stop_tokens = {3};
  EXPECT_NE(refusal(stops).find("token 3, which ends"), std::string::npos);
  RequestDraft chances = begun_draft(10, {1}, 8);
  chances.sampling.chances = 0;
  EXPECT_NE(refusal(chances).find("logprobs"), std::string::npos);
  RequestDraft told = begun_draft(10, {1}, 8);
  told.tell_prompt = true;
  EXPECT_NE(refusal(told).find("logprobs"), std::string::npos);
}

TEST(BegunRequest, IsRefusedWhereItsContextHasBeenShifted) {
  RequestLimits limits = test_limits();
  limits.shifts = true;
  EXPECT_EQ(refusal(begun_draft(90, test_prompt(9), -1), limits), "");
  EXPECT_NE(refusal(begun_draft(90, test_prompt(10), -1), limits).find("room in the context"), std::string::npos);
}

TEST(BegunRequest, IsDeterministicOnlyWithThePromptOfTheCache) {
  RequestDraft draft = begun_draft(kFixedChunk + 5, test_prompt(2 * kFixedChunk), 3 * kFixedChunk);
  draft.deterministic = true;
  RequestLimits limits = test_limits();
  limits.context = 8 * kFixedChunk;
  const RequestPtr request = test_request(1, std::move(draft), limits);
  EXPECT_EQ(request->usable(3 * kFixedChunk), kFixedChunk) << "its answer is computed row by row";
}

TEST(BegunSequence, IsAsIfItHadBeenPreempted) {
  Sequence sequence(test_request(1, begun_draft(10, {5, 6, 7}, 5)));
  EXPECT_EQ(sequence.state(), State::waiting);
  EXPECT_EQ(sequence.length(), 13);
  EXPECT_EQ(sequence.left(), 13);
  EXPECT_EQ(sequence.generated(), 3);
  EXPECT_EQ(sequence.token(10), 5);
  EXPECT_EQ(sequence.token(12), 7);
  EXPECT_EQ(sequence.preemptions(), 0);
  sequence.start(SlotId{0}, after(10));
  EXPECT_EQ(sequence.state(), State::prefilling);
  sequence.computed_rows(12, after(20));
  EXPECT_EQ(sequence.state(), State::decoding) << "its next row is like those of all streams";
  sequence.computed_rows(1, after(30));
  sequence.add_token(8, after(30));
  EXPECT_FALSE(sequence.at_limit());
  sequence.computed_rows(1, after(40));
  sequence.add_token(9, after(40));
  EXPECT_TRUE(sequence.at_limit());
  EXPECT_EQ(sequence.generated_tokens(), (std::vector<Token>{5, 6, 7, 8, 9}));
}

TEST(BegunSequence, TimesAreThoseOfWhatIsNew) {
  RequestDraft draft = begun_draft(10, {5, 6, 7}, 5);
  draft.ttft_ms = 100;
  draft.traced = true;
  Sequence sequence(test_request(1, std::move(draft)));
  EXPECT_EQ(sequence.patience(), after(100)) << "its first token is the first new one";
  sequence.start(SlotId{0}, after(10));
  EXPECT_FALSE(sequence.has_spoken());
  EXPECT_EQ(sequence.usage(after(15)).decode, Duration::zero());
  EXPECT_EQ(sequence.usage(after(15)).prefill, milliseconds(5));
  sequence.computed_rows(13, after(20));
  sequence.took_part(13, false, after(10));
  sequence.add_token(8, after(20));
  EXPECT_TRUE(sequence.has_spoken());
  EXPECT_EQ(sequence.patience(), kNever);
  const Usage usage = sequence.usage(after(50));
  EXPECT_EQ(usage.prompt, 10);
  EXPECT_EQ(usage.completion, 4);
  EXPECT_EQ(usage.begun, 3);
  EXPECT_EQ(usage.prefill, milliseconds(10));
  EXPECT_EQ(usage.decode, milliseconds(30));
  ASSERT_EQ(sequence.chunks().size(), 1u);
  EXPECT_EQ(sequence.chunks().front().tokens, 13);
}

TEST(BegunSequence, WhatIsCachedOfItsAnswerIsNotOfThePrompt) {
  Sequence sequence(test_request(1, begun_draft(10, {5, 6, 7}, 5)));
  sequence.start(SlotId{0}, after(10));
  sequence.restored(12);
  EXPECT_EQ(sequence.state(), State::decoding);
  EXPECT_EQ(sequence.left(), 1);
  EXPECT_EQ(sequence.cached(), 10);
  EXPECT_EQ(sequence.found(), 12);
  EXPECT_EQ(sequence.usage(after(11)).cached, 10);
}

}  // namespace
}  // namespace chasqui
