#include "sched/ngram_index.h"

#include <random>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

// A sequence that begins with these tokens.
Sequence sequence_of(std::vector<Token> prompt) {
  RequestDraft draft;
  draft.prompt = std::move(prompt);
  RequestLimits limits = test_limits();
  limits.context = 1 << 20;
  return Sequence(test_request(1, std::move(draft), limits, TimePoint{}));
}

std::vector<Token> draft_of(const Sequence& sequence, TokenCount most = 4, TokenCount size = NgramIndex::kNgram) {
  NgramIndex index(size);
  std::vector<Token> out = {99};
  index.follow(sequence);
  index.draft(sequence, most, out);
  return out;
}

using Tokens = std::vector<Token>;

TEST(NgramIndex, DraftsWhatFollowedTheLastTime) {
  EXPECT_EQ(draft_of(sequence_of({1, 2, 3, 4, 5, 6, 7, 1, 2, 3})), (Tokens{4, 5, 6, 7}));
  EXPECT_EQ(draft_of(sequence_of({1, 2, 3, 4, 5, 6, 7, 1, 2, 3}), 2), (Tokens{4, 5}));
}

TEST(NgramIndex, TheNewestTimeCounts) {
  EXPECT_EQ(draft_of(sequence_of({1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}), 1), (Tokens{5}));
}

TEST(NgramIndex, WhatRepeatsItselfUpToTheEndGoesOn) {
  EXPECT_EQ(draft_of(sequence_of({7, 7, 7, 7}), 5), (Tokens{7, 7, 7, 7, 7}));
  EXPECT_EQ(draft_of(sequence_of({1, 2, 1, 2, 1, 2}), 5), (Tokens{1, 2, 1, 2, 1}));
}

TEST(NgramIndex, DraftsNothingForWhatIsNew) {
  EXPECT_TRUE(draft_of(sequence_of({1, 2, 3, 4, 5, 2, 3})).empty()) << "two tokens in common are too few";
  EXPECT_TRUE(draft_of(sequence_of({1})).empty());
  EXPECT_TRUE(draft_of(sequence_of({1, 2, 3})).empty()) << "it is not its own past";
}

TEST(NgramIndex, HasNgramsOfTheSizeThatIsWanted) {
  const Sequence two_in_common = sequence_of({1, 2, 3, 4, 5, 2, 3});
  EXPECT_EQ(draft_of(two_in_common, 2, 2), (Tokens{4, 5}));
  EXPECT_TRUE(draft_of(two_in_common, 2, 3).empty());
  EXPECT_EQ(draft_of(sequence_of({1, 2, 3, 4, 9, 2, 3, 4, 5, 1, 2, 3, 4}), 1, 4), (Tokens{9}))
      << "the older one is longer";
  EXPECT_TRUE(draft_of(sequence_of({1, 2, 3}), 2, 1024).empty());
}

// The table grows, forgets what collides, and never says what did not follow.
TEST(NgramIndex, FollowsASequenceAsItGrows) {
  std::mt19937 dice(1);
  Sequence sequence = sequence_of({0});
  sequence.start(SlotId{0}, TimePoint{});
  NgramIndex index;
  std::vector<Token> out;
  int drafted = 0;
  for (int i = 0; i < 3000; ++i) {
    sequence.computed_rows(1, TimePoint{});
    sequence.add_token(static_cast<Token>(dice() % 20), TimePoint{});
    index.follow(sequence);
    index.draft(sequence, 3, out);
    if (out.empty()) continue;
    ++drafted;
    // Somewhere before the end the last three tokens are followed by the draft token.
    const TokenCount end = sequence.length();
    bool found = false;
    for (TokenCount at = NgramIndex::kNgram; at < end && !found; ++at) {
      found = true;
      for (TokenCount k = 1; k <= NgramIndex::kNgram; ++k) found &= sequence.token(at - k) == sequence.token(end - k);
      for (TokenCount k = 0; k < 3 && at + k < end; ++k) {
        found &= sequence.token(at + k) == out[static_cast<std::size_t>(k)];
      }
    }
    EXPECT_TRUE(found) << "step " << i;
  }
  EXPECT_GT(drafted, 300);
}

}  // namespace
}  // namespace chasqui
