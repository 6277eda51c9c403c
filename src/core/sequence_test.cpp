#include "core/sequence.h"

#include <vector>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

using State = Sequence::State;

constexpr TimePoint at(int ms) { return TimePoint{milliseconds(ms)}; }

Sequence started(TokenCount prompt, std::int64_t max_tokens) {
  Sequence sequence(test_request(1, prompt, max_tokens));
  sequence.start(SlotId{2}, at(10));
  return sequence;
}

TEST(Sequence, GoesThroughItsStatesInOrder) {
  Sequence sequence(test_request(7, 10, 3));
  EXPECT_EQ(sequence.id(), RequestId{7});
  EXPECT_EQ(sequence.state(), State::waiting);
  EXPECT_FALSE(sequence.slot().valid());

  sequence.start(SlotId{2}, at(10));
  EXPECT_EQ(sequence.state(), State::prefilling);
  EXPECT_EQ(sequence.slot(), SlotId{2});
  EXPECT_EQ(sequence.left(), 10);

  sequence.computed_rows(6, {});
  EXPECT_EQ(sequence.state(), State::prefilling);
  EXPECT_EQ(sequence.left(), 4);
  sequence.computed_rows(4, {});
  EXPECT_EQ(sequence.state(), State::prefilling) << "it decodes when it has said something";
  EXPECT_EQ(sequence.left(), 0);

  sequence.add_token(55, at(20));
  EXPECT_EQ(sequence.state(), State::decoding);
  EXPECT_EQ(sequence.token(10), 55);
  EXPECT_EQ(sequence.generated(), 1);
  EXPECT_EQ(sequence.length(), 11);
  EXPECT_EQ(sequence.left(), 1);
  EXPECT_EQ(sequence.last_token_at(), at(20));
  EXPECT_EQ(sequence.computed(), 10) << "the newest token is not in the model yet";
  sequence.computed_rows(1, {});
  sequence.add_token(56, at(30));
  EXPECT_FALSE(sequence.at_limit());
  sequence.computed_rows(1, {});
  sequence.add_token(57, at(40));
  EXPECT_TRUE(sequence.at_limit());
  sequence.finish();
  EXPECT_EQ(sequence.state(), State::finished);
}

TEST(Sequence, CanFinishFromAnyState) {
  Sequence waiting(test_request(1, 10, 3));
  waiting.finish();
  EXPECT_EQ(waiting.state(), State::finished);
  Sequence prefilling = started(10, 3);
  prefilling.computed_rows(5, {});
  prefilling.finish();
  EXPECT_EQ(prefilling.state(), State::finished);
}

TEST(Sequence, ItsTokensAreThePromptAndThenWhatItSaid) {
  Sequence sequence = started(3, 5);
  const std::vector<Token> prompt = sequence.request().prompt;
  sequence.computed_rows(3, {});
  sequence.add_token(70, at(20));
  sequence.computed_rows(1, {});
  sequence.add_token(71, at(30));
  ASSERT_EQ(sequence.length(), 5);
  for (TokenCount i = 0; i < 3; ++i) EXPECT_EQ(sequence.token(i), prompt[static_cast<std::size_t>(i)]);
  EXPECT_EQ(sequence.token(3), 70);
  EXPECT_EQ(sequence.token(4), 71);
}

TEST(Sequence, NeedsACellForEachTokenButTheLast) {
  for (const TokenCount max_tokens : {1, 2, 5}) {
    Sequence sequence = started(10, max_tokens);
    sequence.computed_rows(10, {});
    while (true) {
      sequence.add_token(1, at(20));
      if (sequence.at_limit()) break;
      sequence.computed_rows(1, {});
    }
    EXPECT_EQ(sequence.computed(), 10 + max_tokens - 1);
    EXPECT_LT(sequence.computed(), test_limits().context);
  }
  EXPECT_TRUE(started(10, 0).at_limit());
}

TEST(Sequence, APreemptedOneKeepsItsTokensAndComputesThemAgain) {
  Sequence sequence = started(10, 5);
  sequence.computed_rows(10, {});
  sequence.add_token(70, at(20));
  sequence.computed_rows(1, {});
  sequence.add_token(71, at(30));

  sequence.preempt(TimePoint{});
  EXPECT_EQ(sequence.state(), State::waiting);
  EXPECT_FALSE(sequence.slot().valid());
  EXPECT_EQ(sequence.preemptions(), 1);
  EXPECT_EQ(sequence.computed(), 0);
  EXPECT_EQ(sequence.generated(), 2);
  EXPECT_EQ(sequence.left(), 12);

  sequence.start(SlotId{0}, at(100));
  EXPECT_EQ(sequence.state(), State::prefilling);
  EXPECT_EQ(sequence.started_at(), at(10)) << "it started when it first started";
  EXPECT_EQ(sequence.last_token_at(), at(30)) << "its stream has been waiting since then";
  sequence.computed_rows(10, {});
  EXPECT_EQ(sequence.state(), State::prefilling) << "what it said is still to be read";
  sequence.computed_rows(1, {});
  EXPECT_EQ(sequence.state(), State::decoding) << "the row of the last token is a decode row";
  sequence.computed_rows(1, {});
  sequence.add_token(72, at(110));
  EXPECT_EQ(sequence.token(12), 72);
  EXPECT_EQ(sequence.generated(), 3);
}

TEST(Sequence, MaySayItsNextTokenFromTheLastChunkOfItsSecondReading) {
  Sequence sequence = started(10, 5);
  sequence.computed_rows(10, {});
  sequence.add_token(70, at(20));
  sequence.preempt(TimePoint{});
  sequence.start(SlotId{0}, at(100));
  sequence.computed_rows(11, {});
  sequence.add_token(71, at(110));
  EXPECT_EQ(sequence.state(), State::decoding);
  EXPECT_EQ(sequence.left(), 1);
}

TEST(Sequence, AMoveChangesTheSlotOnly) {
  Sequence sequence = started(10, 5);
  sequence.computed_rows(4, {});
  sequence.move(SlotId{1});
  EXPECT_EQ(sequence.slot(), SlotId{1});
  EXPECT_EQ(sequence.state(), State::prefilling);
  EXPECT_EQ(sequence.computed(), 4);
}

TEST(Sequence, KnowsWhenItLastHadRows) {
  Sequence sequence = started(10, 5);
  EXPECT_EQ(sequence.last_rows_at(), at(10)) << "before the first: when it got its slot";
  sequence.computed_rows(4, at(20));
  EXPECT_EQ(sequence.last_rows_at(), at(20));
  EXPECT_EQ(sequence.last_token_at(), at(10)) << "rows are no token";
  sequence.move(SlotId{1});
  sequence.computed_rows(6, at(30));
  sequence.add_token(70, at(35));
  EXPECT_EQ(sequence.last_rows_at(), at(30));
  sequence.preempt(TimePoint{});
  sequence.start(SlotId{0}, at(100));
  EXPECT_EQ(sequence.last_rows_at(), at(100)) << "its wait for a slot is no wait for rows";
}

TEST(Sequence, GoesOnDecodingWithTokensThatWereForced) {
  Sequence sequence = started(10, 8);
  sequence.computed_rows(10, at(20));
  sequence.add_token(70, at(20));
  sequence.add_forced_token(71, at(20));
  sequence.add_forced_token(72, at(20));
  EXPECT_EQ(sequence.left(), 3);
  EXPECT_TRUE(sequence.decoding());
  sequence.computed_rows(2, at(30));
  EXPECT_TRUE(sequence.decoding());
  EXPECT_EQ(sequence.last_token_at(), at(20));
  EXPECT_EQ(sequence.went_on_at(), at(30));
  EXPECT_EQ(sequence.usage(at(30)).forced_tokens, 2);
  EXPECT_EQ(sequence.usage(at(30)).completion, 3);
  sequence.preempt(at(40));
  sequence.start(SlotId{0}, at(50));
  sequence.restored(11);
  EXPECT_TRUE(sequence.prefilling()) << "two rows are left";
  sequence.computed_rows(2, at(60));
  EXPECT_TRUE(sequence.decoding());
}

TEST(Sequence, MayStartWhenTheClockStandsAtZero) {
  Sequence sequence(test_request(1, 10, 3));
  EXPECT_FALSE(sequence.started());
  sequence.start(SlotId{0}, TimePoint{});
  EXPECT_TRUE(sequence.started());
  EXPECT_EQ(sequence.usage(at(50)).queue, Duration::zero());
  EXPECT_EQ(sequence.usage(at(50)).prefill, milliseconds(50));
}

TEST(Sequence, WhatIsBroughtBackIsNotComputedAndCountsAsCached) {
  Sequence sequence = started(10, 5);
  sequence.restored(7);
  EXPECT_EQ(sequence.state(), State::prefilling);
  EXPECT_EQ(sequence.computed(), 7);
  EXPECT_EQ(sequence.left(), 3);
  EXPECT_EQ(sequence.usage(at(20)).cached, 7);
  sequence.computed_rows(3, {});
  sequence.add_token(70, at(20));
  sequence.preempt(TimePoint{});
  sequence.start(SlotId{0}, at(30));
  sequence.restored(10);
  EXPECT_EQ(sequence.state(), State::decoding) << "all but its newest token is there";
  EXPECT_EQ(sequence.usage(at(40)).cached, 7) << "of the prompt, before any of it was computed";
}

TEST(Sequence, WhatCouldNotBeBroughtBackIsComputed) {
  Sequence sequence = started(10, 5);
  sequence.restored(9);
  sequence.not_restored();
  EXPECT_EQ(sequence.state(), State::prefilling);
  EXPECT_EQ(sequence.left(), 10);
  EXPECT_EQ(sequence.usage(at(20)).cached, 0);
  sequence.computed_rows(10, {});
  sequence.add_token(70, at(20));
  sequence.preempt(TimePoint{});
  sequence.start(SlotId{0}, at(30));
  sequence.restored(10);
  sequence.not_restored();
  EXPECT_EQ(sequence.state(), State::prefilling) << "it is read again";
  EXPECT_EQ(sequence.left(), 11);
}

TEST(Sequence, WhoLosesItsSlotBeforeItsFirstRowsHasHadNothingCached) {
  Sequence sequence = started(10, 5);
  sequence.restored(9);
  sequence.preempt(TimePoint{});
  EXPECT_EQ(sequence.usage(at(20)).cached, 0);
  sequence.start(SlotId{0}, at(30));
  sequence.restored(4);
  sequence.computed_rows(6, {});
  EXPECT_EQ(sequence.usage(at(40)).cached, 4);
}

TEST(Sequence, CopiesItsTokensAcrossTheEndOfThePrompt) {
  Sequence sequence = started(3, 5);
  sequence.computed_rows(3, {});
  sequence.add_token(70, at(20));
  std::vector<Token> tokens = {1, 2, 3, 4, 5, 6};
  sequence.copy_tokens(4, tokens);
  const std::vector<Token>& prompt = sequence.request().prompt;
  EXPECT_EQ(tokens, (std::vector<Token>{prompt[0], prompt[1], prompt[2], 70}));
  sequence.copy_tokens(2, tokens);
  EXPECT_EQ(tokens, (std::vector<Token>{prompt[0], prompt[1]}));
  sequence.copy_tokens(0, tokens);
  EXPECT_TRUE(tokens.empty());
}

TEST(SequenceDeathTest, RefusesToBringBackWhatCannotBe) {
  Sequence sequence = started(10, 5);
  EXPECT_DEATH(sequence.restored(0), "check failed");
  EXPECT_DEATH(sequence.restored(10), "check failed") << "one is left to compute";
  EXPECT_DEATH(sequence.not_restored(), "check failed");
  sequence.computed_rows(1, {});
  EXPECT_DEATH(sequence.restored(5), "check failed");
}

TEST(SequenceDeathTest, RefusesWhatItsStateDoesNotAllow) {
  Sequence waiting(test_request(1, 10, 3));
  EXPECT_DEATH(waiting.computed_rows(1, {}), "check failed");
  EXPECT_DEATH(waiting.add_token(1, at(0)), "check failed");
  EXPECT_DEATH(waiting.preempt(TimePoint{}), "check failed");
  EXPECT_DEATH(waiting.move(SlotId{0}), "check failed");

  Sequence prefilling = started(10, 3);
  EXPECT_DEATH(prefilling.start(SlotId{3}, at(11)), "check failed");
  prefilling.computed_rows(9, {});
  EXPECT_DEATH(prefilling.add_token(1, at(20)), "check failed") << "no token before the last row of the prompt";
  EXPECT_DEATH(prefilling.computed_rows(2, {}), "check failed") << "no rows beyond what is known";

  prefilling.computed_rows(1, {});
  EXPECT_DEATH(prefilling.computed_rows(1, {}), "check failed") << "no decode row without a token to put in";

  prefilling.finish();
  EXPECT_DEATH(prefilling.finish(), "check failed");
  EXPECT_DEATH(prefilling.computed_rows(1, {}), "check failed");
  EXPECT_DEATH(prefilling.add_token(1, at(30)), "check failed");
}

TEST(Usage, SplitsTheTimeIntoQueuePrefillAndDecode) {
  RequestDraft draft;
  draft.prompt = test_prompt(10);
  Sequence sequence(test_request(1, std::move(draft), test_limits(), at(100)));

  Usage usage = sequence.usage(at(130));
  EXPECT_EQ(usage.queue, milliseconds(30)) << "all its life in the queue";
  EXPECT_EQ(usage.prefill, Duration::zero());
  EXPECT_EQ(usage.decode, Duration::zero());
  EXPECT_EQ(usage.prompt, 10);
  EXPECT_EQ(usage.completion, 0);

  sequence.start(SlotId{0}, at(140));
  sequence.computed_rows(4, {});
  usage = sequence.usage(at(160));
  EXPECT_EQ(usage.queue, milliseconds(40));
  EXPECT_EQ(usage.prefill, milliseconds(20)) << "ended while prefilling";
  EXPECT_EQ(usage.decode, Duration::zero());

  sequence.computed_rows(6, {});
  sequence.add_token(1, at(200));
  usage = sequence.usage(at(200));
  EXPECT_EQ(usage.prefill, milliseconds(60));
  EXPECT_EQ(usage.decode, Duration::zero());
  EXPECT_EQ(usage.completion, 1);

  sequence.computed_rows(1, {});
  sequence.add_token(2, at(250));
  sequence.finish();
  usage = sequence.usage(at(250));
  EXPECT_EQ(usage.queue, milliseconds(40));
  EXPECT_EQ(usage.prefill, milliseconds(60));
  EXPECT_EQ(usage.decode, milliseconds(50));
  EXPECT_EQ(usage.completion, 2);
  EXPECT_EQ(usage.cached, 0);
}

TEST(Usage, CountsTheTimeThatAPreemptedOneSpendsWaitingAsDecode) {
  Sequence sequence = started(10, 5);
  sequence.computed_rows(10, {});
  sequence.add_token(70, at(20));
  sequence.preempt(TimePoint{});
  sequence.start(SlotId{0}, at(100));
  sequence.computed_rows(11, {});
  sequence.add_token(71, at(130));
  const Usage usage = sequence.usage(at(130));
  EXPECT_EQ(usage.queue, milliseconds(10));
  EXPECT_EQ(usage.prefill, milliseconds(10));
  EXPECT_EQ(usage.decode, milliseconds(110));
  EXPECT_EQ(usage.completion, 2);
}

TEST(Usage, CountsStepsAndThoseThatOthersShared) {
  Sequence sequence = started(10, 5);
  sequence.computed_rows(10, at(20));
  sequence.took_part(10, false, at(10), milliseconds(18));
  sequence.add_token(70, at(20));
  sequence.computed_rows(1, at(30));
  EXPECT_FALSE(sequence.usage(at(30)).joules);
  sequence.took_part(1, true, at(20), milliseconds(5), 0.25);
  sequence.preempt(TimePoint{});
  const Usage usage = sequence.usage(at(30));
  EXPECT_EQ(usage.cpu, milliseconds(23));
  EXPECT_EQ(usage.joules, 0.25);
  EXPECT_EQ(usage.steps, 2);
  EXPECT_EQ(usage.shared, 1);
  EXPECT_EQ(usage.preemptions, 1);
  EXPECT_TRUE(sequence.chunks().empty()) << "they were not asked for";
}

TEST(Usage, OfATracedRequestHasThePiecesOfItsPromptButNotMoreThanAreKept) {
  RequestDraft draft;
  draft.prompt = test_prompt(90);
  draft.traced = true;
  Sequence sequence(test_request(1, std::move(draft)));
  sequence.start(SlotId{0}, at(0));
  for (int i = 0; i < 90; ++i) {
    sequence.computed_rows(1, at(i + 1));
    sequence.took_part(1, false, at(i));
  }
  ASSERT_EQ(sequence.chunks().size(), Sequence::kChunksMax);
  EXPECT_EQ(sequence.chunks().front().end, milliseconds(1));
  EXPECT_EQ(sequence.chunks().back().begin, milliseconds(63));
  EXPECT_EQ(sequence.chunks().back().end, milliseconds(90));
  EXPECT_EQ(sequence.chunks().back().tokens, 27);
}

TEST(FinishReason, EveryNameIsDifferentSinceItIsAMetricLabel) {
  EXPECT_EQ(name(FinishReason::stop), "stop");
  EXPECT_EQ(name(FinishReason::length), "length");
  EXPECT_EQ(name(FinishReason::cancelled), "cancelled");
  EXPECT_EQ(name(FinishReason::deadline), "deadline");
  EXPECT_EQ(name(FinishReason::error), "error");
}

}  // namespace
}  // namespace chasqui
