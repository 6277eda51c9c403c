#include "sched/drafts.h"

#include <gtest/gtest.h>

#include "sched/fake_sequences.h"

namespace chasqui {
namespace {

using Tokens = std::vector<Token>;
constexpr TokenCount kCells = 100;
// Says 4, 5, 6 … again.
const Tokens kRepeats = {1, 2, 3, 4, 5, 6, 8, 9, 1, 2};

Tokens tokens_of(const Drafts::Turn& turn) { return turn.draft->tokens; }

TEST(Drafts, AreWhatFollowedBefore) {
  FakeSequences sequences;
  sequences.add(kRepeats, 3);
  sequences.add(Tokens{1, 2, 3, 4}, 5);
  Drafts drafts({.draft_tokens_max = 3});
  drafts.collect(sequences.decoding(), kCells);
  ASSERT_EQ(drafts.turns().size(), 1u) << "the other one has not repeated itself";
  EXPECT_EQ(tokens_of(drafts.turns()[0]), (Tokens{4, 5, 6}));
  EXPECT_EQ(drafts.count(2), 2);
  EXPECT_EQ(drafts.count(8), 3);
  EXPECT_DOUBLE_EQ(drafts.tokens(2, 2), 2 + 0.5 + 0.25);
  EXPECT_TRUE(drafts.checked(RequestId{1}).empty());
  drafts.turns()[0].draft->checked = 2;
  EXPECT_EQ(drafts.checked(RequestId{1}).size(), 2u);
  drafts.collect(sequences.decoding(), kCells);
  EXPECT_TRUE(drafts.checked(RequestId{1}).empty());
}

TEST(Drafts, AreNoMoreThanTheAnswerMayHave) {
  const auto most = [](TokenCount own, TokenCount max_tokens, TokenCount cells) {
    FakeSequences sequences;
    RequestDraft draft;
    draft.prompt = kRepeats;
    draft.max_tokens = max_tokens;
    draft.draft_tokens_max = own;
    sequences.add(std::move(draft), 3);
    Drafts drafts({.draft_tokens_max = 6});
    drafts.collect(sequences.decoding(), cells);
    return drafts.count(Drafts::kMost);
  };
  EXPECT_EQ(most(-1, 50, kCells), 6);
  EXPECT_EQ(most(2, 50, kCells), 2);
  EXPECT_EQ(most(0, 50, kCells), 0);
  EXPECT_EQ(most(-1, 5, kCells), 3) << "one is said, and the row itself brings one";
  EXPECT_EQ(most(-1, 50, 13), 2) << "eleven are there";
}

// Its context is shifted where it would be without them.
TEST(Drafts, AreNoMoreThanFitBeforeAContextIsShifted) {
  RequestLimits limits = test_limits();
  limits.context = 14;
  limits.shifts = true;
  RequestDraft draft;
  draft.prompt = kRepeats;
  draft.max_tokens = 50;
  FakeSequences sequences;
  Sequence& sequence = sequences.add(test_request(1, std::move(draft), limits), 3);
  Drafts drafts({.draft_tokens_max = 6});
  drafts.collect(sequences.decoding(), kCells);
  EXPECT_EQ(drafts.count(Drafts::kMost), 2) << "eleven are there, and the row itself brings one";
  FakeSequences::say(sequence, {4, 5, 6});
  ASSERT_EQ(sequence.to_remove(), 6);
  sequence.shift(6);
  drafts.shifted(sequence.id());
  drafts.collect(sequences.decoding(), kCells);
  EXPECT_TRUE(drafts.turns().empty()) << "what is left of it has not repeated itself";
}

TEST(Drafts, AreNoneWhereForcedTokensAreToBeComputed) {
  FakeSequences sequences;
  sequences.add(kRepeats, 3).add_forced_token(4, TimePoint{});
  Drafts drafts({.draft_tokens_max = 3});
  drafts.collect(sequences.decoding(), kCells);
  EXPECT_TRUE(drafts.turns().empty());
}

TEST(Drafts, CountWhetherTheyWouldHaveBeenAccepted) {
  FakeSequences sequences;
  Sequence& sequence = sequences.add(kRepeats, 3);
  Drafts drafts({.draft_tokens_max = 3});
  drafts.collect(sequences.decoding(), kCells);
  FakeSequences::say(sequence, {4});
  drafts.commit(sequence, 0, 1);
  drafts.collect(sequences.decoding(), kCells);
  EXPECT_GT(drafts.tokens(1, 1), 1.5) << "unchecked, and right";
  FakeSequences::say(sequence, {9});
  drafts.commit(sequence, 0, 1);
  sequences.add(kRepeats, 3);
  drafts.collect(sequences.decoding(), kCells);
  EXPECT_LT(drafts.tokens(1, 1), 1.6) << "one right and one wrong, and a new one begins with that";
}

TEST(Drafts, OfAModelAreExpectedAnewAfterSequencesWithoutAny) {
  Drafts drafts({.draft_tokens_max = 1, .draft_model = true});
  const auto expected = [&drafts](Sequence& sequence, FakeSequences& sequences) {
    drafts.collect(sequences.decoding(), kCells);
    const double tokens = drafts.tokens(0, 1);
    drafts.forget(sequence.id());
    return tokens;
  };
  FakeSequences first;
  Sequence& wrong = first.add(kRepeats);
  drafts.collect(first.decoding(), kCells);
  for (int i = 0; i < 30; ++i) {
    FakeSequences::say(wrong, {9});
    drafts.commit(wrong, 1, 1);
  }
  drafts.forget(wrong.id());
  for (int i = 0; i < 17; ++i) {
    FakeSequences next;
    Sequence& sequence = next.add(kRepeats);
    const double tokens = expected(sequence, next);
    EXPECT_EQ(tokens > 0.5, i == 16) << i;
  }
}

}  // namespace
}  // namespace chasqui
