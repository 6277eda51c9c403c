#include "core/checkpoints.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

using Positions = std::vector<TokenCount>;

TEST(Checkpoints, AreAtThePartsOfAChatAndBeforeTheGenerationPrompt) {
  const Positions parts = {1020, 600, 900};
  EXPECT_EQ(plan_checkpoints(parts, 1025, 4096), (Positions{600, 900, 1020}));
}

TEST(Checkpoints, OfAPlainTextIsBeforeItsLastToken) { EXPECT_EQ(plan_checkpoints({}, 1000, 4096), Positions{999}); }

TEST(Checkpoints, OfALongPromptAreNeverFartherApartThanToldAndAHalf) {
  const Positions parts = {500, 20'000};
  const Positions found = plan_checkpoints(parts, 32'000, 4096);
  TokenCount last = 0;
  for (const TokenCount at : found) {
    EXPECT_GT(at, last);
    EXPECT_LE(at - last, 4096 + 2048);
    last = at;
  }
  EXPECT_EQ(last, 31'999);
  EXPECT_TRUE(std::ranges::count(found, 500) == 1 && std::ranges::count(found, 20'000) == 1);
}

TEST(Checkpoints, OfAShortPromptAreFew) {
  EXPECT_EQ(plan_checkpoints({}, 20, 4096), Positions{}) << "it is read again sooner";
  const Positions parts = {40, 60, 95};
  EXPECT_EQ(plan_checkpoints(parts, 100, 4096), Positions{95}) << "each costs a step";
}

TEST(Checkpoints, AreAsFewAndAsFarApartAsIsSaid) {
  const Positions parts = {600, 900, 1020};
  EXPECT_EQ(plan_checkpoints(parts, 1025, 4096, 200), (Positions{600, 1020})) << "the last one counts";
  EXPECT_EQ(plan_checkpoints(parts, 1025, 4096, 0, 2), (Positions{600, 1020}));
  EXPECT_EQ(plan_checkpoints(parts, 1025, 4096, 0, 1), Positions{1020});
}

TEST(Checkpoints, ThatAreNextToEachOtherAreOne) {
  const Positions parts = {600, 604, 700};
  EXPECT_EQ(plan_checkpoints(parts, 705, 4096), (Positions{600, 700}));
}

TEST(Checkpoints, OutsideOfThePromptAreLeftOut) {
  const Positions parts = {0, -5, 500, 900, 100'000};
  EXPECT_EQ(plan_checkpoints(parts, 500, 4096), Positions{499});
}

}  // namespace
}  // namespace chasqui
