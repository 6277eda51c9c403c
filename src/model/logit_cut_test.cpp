// Where a row is cut, with what a sample of it says and without.
#include "model/logit_cut.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "model/test_sampler.h"

namespace chasqui {
namespace {

TEST(LogitCut, WhatASampleSaysIsAroundTheCut) {
  int said = 0;
  int close = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::vector<float> values = random_row(30000 + seed * 997, seed, 0.5f + 0.05f * static_cast<float>(seed));
    LogitRow row;
    row.look(values);
    LogitCut cut;
    const double part = seed % 2 == 0 ? 0.95 : 0.6;
    const auto around = cut.around_part(row, LogitRow::kLeast, part);
    if (!around) continue;
    ++said;
    const Candidate found = cut.reach(row, *around);
    const Candidate last = cut.reach_part(row, LogitRow::kLeast, part);
    EXPECT_NEAR(found.logit, last.logit, 0.002f) << seed;  // sums are rounded
    EXPECT_GE(last.logit, around->low);
    EXPECT_LT(last.logit, around->high);
    const double all = row.mass(LogitRow::kLeast, 1.0f);
    if (row.mass(around->low, 1.0f) - around->higher < 0.1 * all) ++close;
  }
  EXPECT_GT(said, 40) << "it is of use in most rows";
  EXPECT_GT(close, said / 2);
}

TEST(LogitCut, AFewTokensSayNothing) {
  std::vector<float> values(5000, -1e30f);
  for (std::size_t i = 0; i < 40; ++i) values[i * 100] = static_cast<float>(i);
  LogitRow row;
  row.look(values);
  LogitCut cut;
  EXPECT_FALSE(cut.around_part(row, LogitRow::kLeast, 0.9).has_value());
  EXPECT_EQ(cut.reach_part(row, LogitRow::kLeast, 0.9).token, 3700) << "after 39, 38 and 37";
}

TEST(LogitCut, ALittleMoreThanTheCountReachesWhatIsSaid) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::vector<float> values = random_row(60000, seed, 0.2f + 0.1f * static_cast<float>(seed));
    LogitRow row;
    row.look(values);
    LogitCut cut;
    for (const double count : {600.0, 5000.0, 20000.0}) {
      const double reached = row.mass(cut.about_count(row, count), 0.0f);
      EXPECT_GE(reached, count) << seed;
      EXPECT_LE(reached, 2 * count + 1000) << seed;
    }
  }
}

// The same as in a row that is not so short, and with equal logits at the end.
TEST(LogitCut, HalvesShortRows) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::vector<float> values = random_row(6000, seed, 2.0f);
    if (seed % 3 == 1) std::ranges::for_each(values, [](float& value) { value = std::round(value * 2) / 2; });
    if (seed % 3 == 2) values[seed] = 1e30f;
    LogitRow row;
    row.look(values);
    LogitCut cut;
    std::vector<Candidate> all;
    row.at_least(LogitRow::kLeast, all);
    std::ranges::sort(all, more_likely);
    const float floor = all.back().logit;
    for (const std::size_t count : {std::size_t{1}, std::size_t{40}, std::size_t{3000}, all.size() - 1}) {
      const Candidate last = cut.reach_count(row, floor, static_cast<double>(count));
      EXPECT_EQ(last.token, all[count - 1].token) << seed << " " << count;
      cut.forget();
    }
    EXPECT_EQ(cut.reach_count(row, floor, 6000).logit, floor);
    for (const double part : {0.01, 0.5, 0.97}) {
      const Candidate halved = cut.reach_part(row, floor, part);
      const Candidate listed = cut.reach_part(row, LogitRow::kLeast, part);
      EXPECT_NEAR(halved.logit, listed.logit, 0.01f) << seed << " " << part;
    }
  }
}

}  // namespace
}  // namespace chasqui
