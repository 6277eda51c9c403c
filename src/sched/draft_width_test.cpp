#include "sched/draft_width.h"

#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

// Steps of one sequence: the first takes 10 ms, each row more 1 ms.
std::vector<WidthOption> options(std::vector<double> tokens) {
  std::vector<WidthOption> out;
  for (const double each : tokens) {
    out.push_back({.tokens = each, .seconds = 0.010 + 0.001 * static_cast<double>(out.size())});
  }
  return out;
}

constexpr WidthLimits kLimits{.seconds = 1};

TEST(DraftWidth, IsWhatBringsMostTokensASecond) {
  EXPECT_EQ(choose_width(options({1, 1.8, 2.4, 2.5}), kLimits).best.width, 3);
  EXPECT_EQ(choose_width(options({1, 1.05, 1.06}), kLimits).best.width, 1);
  EXPECT_EQ(choose_width(options({1}), kLimits).best.width, 1);
}

TEST(DraftWidth, IsNoOtherOneForAFewPercent) {
  EXPECT_EQ(choose_width(options({1, 1.12}), kLimits).best.width, 1);
  EXPECT_EQ(choose_width(options({1, 1.15}), kLimits).best.width, 2);
}

TEST(DraftWidth, IsInTime) {
  const WidthChoice choice = choose_width(options({1, 1.8, 2.4}), {.seconds = 0.0115});
  EXPECT_EQ(choice.best.width, 2);
  EXPECT_EQ(choice.reachable, 2);
}

TEST(DraftWidth, IsNotWhatWasNotSeenWhichIsHopedFor) {
  std::vector<WidthOption> unseen = options({1, 1.8});
  unseen[1].seen = false;
  unseen[1].hope = 0.5;
  const WidthChoice choice = choose_width(unseen, kLimits);
  EXPECT_EQ(choice.best.width, 1);
  EXPECT_EQ(choice.hoped.width, 2);
  EXPECT_TRUE(choice.hopes);
  EXPECT_NEAR(choice.hoped.rate, 1.8 / 0.0055, 1e-6);
  EXPECT_FALSE(choose_width(options({1, 1.8}), kLimits).hopes) << "what is best is not hoped for";
}

TEST(DraftWidth, StaysWhereATurnCostsMoreThanItBrings) {
  WidthLimits limits = kLimits;
  limits.turn_seconds = 0.020;
  EXPECT_EQ(choose_width(options({1, 1.5}), limits).best.width, 1);
  limits.before = 2;
  EXPECT_EQ(choose_width(options({1, 1.2}), limits).best.width, 2) << "turning back costs as much";
}

TEST(DraftWidth, IsAtLeastWhatItHasToBe) {
  WidthLimits limits = kLimits;
  limits.least = 3;
  EXPECT_EQ(choose_width(options({1, 1, 1, 1}), limits).best.width, 3);
  EXPECT_EQ(choose_width(options({1, 1, 1, 2}), limits).best.width, 4);
}

}  // namespace
}  // namespace chasqui
