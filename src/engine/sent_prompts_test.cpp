#include "engine/sent_prompts.h"

#include <random>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

using Lengths = std::vector<TokenCount>;

constexpr PrefixKey kAnn{1, 0}, kBob{2, 0};

Lengths match(const SentPrompts& sent, PrefixKey key, const std::vector<Token>& prompt) {
  Lengths lengths;
  sent.match(key, prompt, lengths);
  return lengths;
}

std::vector<Token> longer(std::vector<Token> prompt, TokenCount by, std::uint64_t salt = 77) {
  const std::vector<Token> more = test_prompt(by, salt);
  prompt.insert(prompt.end(), more.begin(), more.end());
  return prompt;
}

TEST(SentPrompts, KnowsForEachWorkerHowMuchOfAPromptItWasSent) {
  SentPrompts sent(3, {});
  const auto prompt = test_prompt(100);
  EXPECT_EQ(match(sent, kAnn, prompt), (Lengths{0, 0, 0}));
  sent.add(kAnn, prompt, 0);
  sent.add(kAnn, std::vector(prompt.begin(), prompt.begin() + 40), 2);
  EXPECT_EQ(match(sent, kAnn, longer(prompt, 10)), (Lengths{100, 0, 40}));
  EXPECT_EQ(match(sent, kAnn, prompt), (Lengths{99, 0, 40})) << "the last token is always computed";
  EXPECT_EQ(match(sent, kAnn, {prompt.front()}), (Lengths{0, 0, 0}));
  EXPECT_TRUE(sent.consistent());
}

TEST(SentPrompts, WhatOneTenantSentIsUnknownToTheOthers) {
  SentPrompts sent(1, {});
  const auto prompt = test_prompt(50);
  sent.add(kAnn, prompt, 0);
  EXPECT_EQ(match(sent, kBob, prompt), (Lengths{0}));
  EXPECT_EQ(match(sent, {kAnn.tenant, 1}, prompt), (Lengths{0})) << "another adapter computes something else";
}

TEST(SentPrompts, TheTurnsOfAConversationTakeTheRoomOfOne) {
  SentPrompts sent(1, {});
  auto conversation = test_prompt(10);
  for (std::uint64_t turn = 0; turn < 50; ++turn) {
    sent.add(kAnn, conversation, 0);
    EXPECT_EQ(sent.entries(0), 1u);
    EXPECT_EQ(sent.tokens(0), conversation.size());
    conversation = longer(conversation, 7, turn);
  }
  sent.add(kAnn, test_prompt(10), 0);
  EXPECT_EQ(sent.entries(0), 1u) << "the first turn again is nothing new";
  EXPECT_TRUE(sent.consistent());
}

TEST(SentPrompts, WhereNothingCanBeCutOnlyWholePromptsHelpAndAllTurnsStay) {
  SentPrompts sent(1, {.cut_anywhere = false});
  const auto first = test_prompt(20);
  const auto second = longer(first, 20);
  sent.add(kAnn, first, 0);
  sent.add(kAnn, second, 0);
  sent.add(kAnn, second, 0);
  EXPECT_EQ(sent.entries(0), 2u);
  EXPECT_EQ(match(sent, kAnn, longer(first, 30, 5)), (Lengths{20}));
  EXPECT_EQ(match(sent, kAnn, longer(second, 1)), (Lengths{40}));
  EXPECT_EQ(match(sent, kAnn, second), (Lengths{20})) << "one token less than the second is not the second";
  EXPECT_TRUE(sent.consistent());
}

TEST(SentPrompts, ForgetsWhatWasNotUsedForLongest) {
  SentPrompts sent(1, {.entries = 3});
  for (std::uint64_t salt = 0; salt < 3; ++salt) sent.add(kAnn, test_prompt(10, salt), 0);
  sent.add(kAnn, test_prompt(10, 0), 0);  // used again
  sent.add(kAnn, test_prompt(10, 3), 0);
  EXPECT_EQ(match(sent, kAnn, test_prompt(11, 0)).front(), 10);
  EXPECT_EQ(match(sent, kAnn, test_prompt(11, 1)).front(), 0) << "the oldest unused one";
  EXPECT_EQ(match(sent, kAnn, test_prompt(11, 3)).front(), 10);
}

TEST(SentPrompts, RemembersNothingWhenItMayNot) {
  SentPrompts sent(2, {.entries = 0});
  sent.add(kAnn, test_prompt(10), 1);
  EXPECT_EQ(match(sent, kAnn, test_prompt(10)), (Lengths{0, 0}));
  EXPECT_EQ(sent.tokens(1), 0u);
}

TEST(SentPrompts, StaysWithinItsLimitsWhateverIsSent) {
  const SentPrompts::Limits limits{.entries = 20, .tokens = 600};
  SentPrompts sent(2, limits);
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    auto prompt = test_prompt(static_cast<TokenCount>(1 + random() % 60), random() % 8);
    if (random() % 3 == 0) prompt = longer(prompt, static_cast<TokenCount>(1 + random() % 60), random() % 4);
    if (random() % 100 == 0) prompt = test_prompt(700, random());  // too much for all of it
    const PrefixKey key{static_cast<std::uint32_t>(random() % 3), 0};
    const std::size_t worker = random() % 2;
    sent.add(key, prompt, worker);
    ASSERT_LE(sent.entries(worker), limits.entries);
    ASSERT_LE(sent.tokens(worker), limits.tokens);
    if (prompt.size() > limits.tokens) continue;
    ASSERT_EQ(match(sent, key, longer(prompt, 1, 1234567))[worker], static_cast<TokenCount>(prompt.size()))
        << "the latest is always known";
    if (i % 50 == 0) {
      ASSERT_TRUE(sent.consistent());
    }
  }
}

}  // namespace
}  // namespace chasqui
