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

std::vector<Token> tokens_of_row(std::vector<Candidate> candidates) {
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
        EXPECT_EQ(tokens_of_row(found), expected) << size << " " << k << " " << name;
      });
    }
  }
}

TEST(LogitRow, TopKOfEqualLogitsAreTheLowestIds) {
  std::vector<Candidate> found;
  each_row(std::vector<float>(5000, 1.5f), [&](LogitRow& row, const char*) {
    row.top_k(3, found);
    EXPECT_EQ(tokens_of_row(found), (std::vector<Token>{0, 1, 2}));
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

TEST(LogitRow, DeviationIsOfAllThatAreThere) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(100, 2);
  for (const std::size_t size : {1u, 7u, 300u, 5000u}) {
    std::vector<float> values(size);
    for (float& value : values) value = normal(random);
    values[size / 2] = 160;
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value);
    const double mean = sum / static_cast<double>(size);
    double squares = 0;
    for (const float value : values) squares += std::pow(static_cast<double>(value) - mean, 2);
    const double expected = std::sqrt(squares / static_cast<double>(size));
    values.push_back(kNan);
    values.push_back(-kInfinity);
    LogitRow row;
    row.look(values);
    EXPECT_NEAR(row.deviation(), expected, 1e-4 * expected) << size;
  }
}

// Counts what is drawn: 20 classes of tokens, compared with their weights by a chi-square test.
void expect_draws(const std::vector<float>& values, float least, float scale) {
  constexpr int kDraws = 20000;
  constexpr std::size_t kClasses = 20;
  std::vector<double> chance(kClasses);
  double sum = 0;
  const float top = std::min(*std::ranges::max_element(values), LogitRow::kMost);
  const auto class_of = [&values](std::size_t token) { return token * kClasses / values.size(); };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] >= least)) continue;
    const double weight = std::exp((static_cast<double>(std::min(values[i], LogitRow::kMost)) - top) * scale);
    chance[class_of(i)] += weight;
    sum += weight;
  }
  std::mt19937_64 random(1);
  std::vector<double> drawn;
  for (int i = 0; i < kDraws; ++i) drawn.push_back(static_cast<double>(random() >> 11) * 0x1p-53);
  std::vector<Token> first;
  each_row(values, [&](LogitRow& row, const char* name) {
    std::vector<Token> tokens;
    std::vector<double> counts(kClasses);
    for (const double number : drawn) {
      const Token token = row.draw(least, scale, number);
      ASSERT_GE(values[static_cast<std::size_t>(token)], least) << name;
      ++counts[class_of(static_cast<std::size_t>(token))];
      tokens.push_back(token);
    }
    double chi_square = 0;
    for (std::size_t i = 0; i < kClasses; ++i) {
      const double mean = kDraws * chance[i] / sum;
      if (mean < 1e-6) {
        EXPECT_EQ(counts[i], 0) << i;
      }
      if (mean >= 5) chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    EXPECT_LT(chi_square, 50.0) << "19 degrees of freedom: once in 7,000; " << name << " " << least << " " << scale;
    if (first.empty()) first = tokens;
    EXPECT_EQ(tokens, first) << "the same tokens with " << name;
  });
}

TEST(LogitRow, DrawsAsOftenAsTheWeightsSay) {
  std::vector<float> values;
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1.5f);
  for (int i = 0; i < 20'010; ++i) values.push_back(normal(random));
  values[17] = kNan;
  values[18] = -kInfinity;
  for (const float least : {LogitRow::kLeast, -1.0f, 3.5f}) {
    for (const float scale : {0.0f, 0.4f, 1.0f, 2.0f}) expect_draws(values, least, scale);
  }
  values.back() = 14;  // more likely than all others, and in a block that the row ends in
  expect_draws(values, LogitRow::kLeast, 1.0f);
  values[5] = kInfinity;
  expect_draws(values, LogitRow::kLeast, 2e-38f);
}

TEST(LogitRow, DrawsTheOnlyOneOfItsBlock) {
  std::vector<float> values(1000, -kInfinity);
  values[10] = values[300] = values[301] = values[999] = 2;
  values[500] = -20;
  expect_draws(values, 0.0f, 1.0f);
  expect_draws(values, LogitRow::kLeast, 0.0f);
  values.assign(1000, -kInfinity);
  values[700] = -5;
  each_row(values, [](LogitRow& row, const char*) {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(row.draw(LogitRow::kLeast, 1.0f, 0.01 * i), 700);
  });
}

}  // namespace
}  // namespace chasqui
