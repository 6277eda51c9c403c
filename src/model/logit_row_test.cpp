#include "model/logit_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Few distinct values, so that ties are common; now and then something that is no number.
std::vector<float> noise(std::size_t size, unsigned seed, int distinct) {
  std::mt19937 generator(seed);
  std::vector<float> row(size);
  for (float& value : row) value = static_cast<float>(static_cast<int>(generator() % static_cast<unsigned>(distinct)));
  for (int i = 0; i < 20; ++i) row[generator() % size] = generator() % 2 == 0 ? kNan : -kInfinity;
  return row;
}

std::vector<Token> sorted_by_likelihood(const std::vector<float>& row) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] > -kInfinity) tokens.push_back(static_cast<Token>(i));
  }
  std::ranges::stable_sort(tokens, std::greater<>(), [&](Token t) { return row[static_cast<std::size_t>(t)]; });
  return tokens;
}

// With each instruction set of this machine.
template <class Check>
void each_row(std::vector<float> values, const Check& check) {
  for (const RowKernels* kernels : all_row_kernels()) {
    if (!kernels->usable()) continue;
    LogitRow row(*kernels);
    row.look(values);
    check(row, kernels->name);
  }
}

std::vector<Token> tokens_of(std::vector<Candidate> candidates) {
  std::ranges::sort(candidates, more_likely);
  std::vector<Token> tokens;
  for (const Candidate& c : candidates) tokens.push_back(c.token);
  return tokens;
}

TEST(LogitRow, LargestIsTheFirstOfTheLargest) {
  for (std::size_t size : {1u, 63u, 64u, 65u, 1000u, 4096u}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      std::vector<float> row = noise(size, seed, 50);
      const std::vector<Token> expected = sorted_by_likelihood(row);
      EXPECT_EQ(largest(row), expected.empty() ? -1 : expected.front());
    }
  }
}

TEST(LogitRow, LargestOfNothingIsNone) {
  EXPECT_EQ(largest({}), -1);
  for (const float value : {-kInfinity, kNan}) {
    std::vector<float> row(200, value);
    EXPECT_EQ(largest(row), -1);
  }
}

TEST(LogitRow, TopKIsTheBeginningOfTheSortedRow) {
  std::vector<Candidate> found;
  for (std::size_t size : {1u, 100u, 1000u, 20000u}) {
    for (std::size_t k : {1u, 2u, 40u, 300u, 999u, 30000u}) {
      const std::vector<float> values = noise(size, static_cast<unsigned>(size + k), 500);
      std::vector<Token> expected = sorted_by_likelihood(values);
      expected.resize(std::min(k, expected.size()));
      each_row(values, [&](LogitRow& row, const char* name) {
        row.top_k(k, found);
        EXPECT_EQ(tokens_of(found), expected) << size << " " << k << " " << name;
      });
    }
  }
}

TEST(LogitRow, TopKOfEqualLogitsAreTheLowestIds) {
  std::vector<Candidate> found;
  each_row(std::vector<float>(5000, 1.5f), [&](LogitRow& row, const char*) {
    row.top_k(3, found);
    EXPECT_EQ(tokens_of(found), (std::vector<Token>{0, 1, 2}));
  });
}

TEST(LogitRow, AtLeastKeepsTheOrderOfIds) {
  std::vector<float> values(300, 0.0f);
  values[7] = 2;
  values[70] = kInfinity;
  values[200] = 1;
  values[201] = kNan;
  values[0] = -kInfinity;
  std::vector<Candidate> found;
  each_row(values, [&](LogitRow& row, const char*) {
    row.at_least(1.0f, found);
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].token, 7);
    EXPECT_EQ(found[1].token, 70);
    EXPECT_EQ(found[1].logit, LogitRow::kMost);
    EXPECT_EQ(found[2].token, 200);
    row.at_least(LogitRow::kLeast, found);
    EXPECT_EQ(found.size(), 298u);
    row.at_least(0.0f, found, 2.0f);
    EXPECT_EQ(found.size(), 296u);
  });
}

TEST(LogitRow, MaskBansWhatHasNoBit) {
  std::vector<float> values(300, 1.0f);
  values[299] = 5;
  values[64] = 3;
  values[65] = 4;
  for (const RowKernels* kernels : all_row_kernels()) {
    if (!kernels->usable()) continue;
    LogitRow row(*kernels);
    std::vector<float> copy = values;
    std::vector<std::uint64_t> bits(5, 0);
    for (const std::size_t token : {3u, 64u, 130u, 290u}) bits[token / 64] |= std::uint64_t{1} << token % 64;
    row.look(copy, bits);
    EXPECT_EQ(row.largest(), 64) << kernels->name;
    EXPECT_EQ(copy[65], -kInfinity);
    EXPECT_EQ(copy[299], -kInfinity);
    EXPECT_EQ(copy[290], 1.0f);
    EXPECT_EQ(row.mass(LogitRow::kLeast, 0.0f), 4.0);
    row.set(64, -kInfinity);
    EXPECT_EQ(row.largest(), 3);
  }
}

TEST(LogitRow, WeightsAreThoseOfTheLibrary) {
  std::vector<float> values;
  for (float logit = 20; logit > -40; logit -= 0.01f) values.push_back(logit);
  double first = 0;
  each_row(values, [&](LogitRow& row, const char* name) {
    const std::span<const float> weights = row.weights(values, 0.7f);
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double exact = std::exp((static_cast<double>(values[i]) - 20.0) * static_cast<double>(0.7f));
      EXPECT_NEAR(weights[i] / exact, 1.0, 1e-5) << values[i];
      if (values[i] >= -3) sum += exact;
    }
    const double mass = row.mass(-3.0f, 0.7f);
    EXPECT_NEAR(mass / sum, 1.0, 1e-6);
    if (first == 0) first = mass;
    EXPECT_EQ(mass, first) << "the same bits with " << name;
  });
}

// Down to the least weight that there is, and with what is no number.
TEST(LogitRow, EachInstructionSetGivesTheSameBits) {
  std::vector<float> values;
  for (int i = 0; i < 4000; ++i) values.push_back(-0.05f * static_cast<float>(i));
  values[11] = kNan;
  values[12] = -kInfinity;
  values[13] = std::numeric_limits<float>::lowest();
  std::vector<float> first;
  std::vector<Token> found_first;
  each_row(values, [&](LogitRow& row, const char* name) {
    std::vector<float> weights;
    for (const float scale : {0.0f, 0.6f, 1.0f, 7.0f}) {
      const std::span<const float> some = row.weights(values, scale);
      weights.insert(weights.end(), some.begin(), some.end());
    }
    std::vector<Candidate> found;
    row.at_least(-77.7f, found, -33.3f);
    std::vector<Token> tokens;
    for (const Candidate& c : found) tokens.push_back(c.token);
    if (first.empty()) {
      first = weights;
      found_first = tokens;
    }
    EXPECT_EQ(weights, first) << name;
    EXPECT_EQ(tokens, found_first) << name;
  });
}

TEST(LogitRow, OneSweepSumsUpAllAndWhatIsAbove) {
  std::vector<float> values;
  for (int i = 0; i < 5000; ++i) values.push_back(static_cast<float>(i * 7919 % 1000) / 100.0f);
  values[17] = kNan;
  values[4990] = kInfinity;
  for (const float scale : {0.0f, 1.0f, 1.7f}) {
    each_row(values, [&](LogitRow& row, const char* name) {
      const LogitRow::Masses both = row.masses(2.0f, scale, 7.5f);
      EXPECT_EQ(both.above, row.mass(7.5f, scale)) << name;
      EXPECT_EQ(both.all, row.mass(2.0f, scale)) << name;
    });
  }
}

// Each token is told for the part of the mass that it weighs.
TEST(LogitRow, TokenAtAPartOfTheMass) {
  std::vector<float> values(1000, -kInfinity);
  values[10] = values[300] = values[301] = values[999] = 2;
  values[500] = -20;
  each_row(values, [&](LogitRow& row, const char* name) {
    const double mass = row.mass(0.0f, 1.0f);
    EXPECT_EQ(mass, 4.0);
    const Token expected[] = {10, 300, 301, 999};
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(row.token_at(i + 0.01), expected[i]) << name;
      EXPECT_EQ(row.token_at(i + 0.99), expected[i]) << name;
    }
    EXPECT_EQ(row.token_at(4.5), 999) << "a rest of rounding";
  });
}

}  // namespace
}  // namespace chasqui
