// The sampler on rows of large vocabularies, which it does not list.
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "model/test_sampler.h"

namespace chasqui {
namespace {

// Draws as often as the reference says: classes of tokens with equal probability, compared by a chi-square test.
void expect_draws_of(const SamplingParams& p, const std::vector<float>& row) {
  constexpr int kDraws = 20000;
  constexpr std::size_t kClasses = 20;
  const std::map<Token, double> expected = reference(p, row);
  std::map<Token, std::size_t> class_of;
  double sum = 0;
  std::vector<double> chance(kClasses);
  for (const auto& [token, probability] : expected) {
    const auto of = std::min(static_cast<std::size_t>(sum * kClasses), kClasses - 1);
    class_of[token] = of;
    chance[of] += probability;
    sum += probability;
  }
  Sampler sampler(p, static_cast<TokenCount>(row.size()), {});
  SamplerScratch scratch;
  std::vector<double> counts(kClasses);
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> copy = row;
    const Token token = sampler.sample(copy, scratch);
    ASSERT_TRUE(class_of.contains(token)) << "is cut off: " << token;
    ++counts[class_of[token]];
  }
  double chi_square = 0;
  for (std::size_t i = 0; i < kClasses; ++i) {
    if (chance[i] == 0) continue;
    const double mean = chance[i] * kDraws;
    chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
  }
  EXPECT_LT(chi_square, 50.0) << "19 degrees of freedom: once in 7,000; top_k " << p.top_k << ", top_p " << p.top_p
                              << ", min_p " << p.min_p << ", temperature " << p.temperature;
}

// Whatever of a large vocabulary may be drawn.
TEST(Sampler, DrawsFromTheRowFollowTheReference) {
  const std::vector<float> row = random_row(12000, 5, 1.5f);
  for (const std::int32_t top_k : {0, 600, 9000}) {
    for (const float top_p : {1.0f, 0.9f}) {
      for (const float min_p : {0.0f, 0.02f}) {
        for (const float temperature : {0.7f, 1.5f}) {
          SamplingParams p = plain();
          p.top_k = top_k;
          p.top_p = top_p;
          p.min_p = min_p;
          p.temperature = temperature;
          expect_draws_of(p, row);
        }
      }
    }
  }
}

// … where many logits are equal, so that top-p ends among them.
TEST(Sampler, DrawsFromARowOfEqualLogitsFollowTheReference) {
  std::vector<float> row = random_row(12000, 6, 1.5f);
  for (float& logit : row) logit = std::round(logit);
  SamplingParams p = plain();
  for (const float top_p : {0.5f, 0.9f, 0.97f}) {
    p.top_p = top_p;
    expect_draws_of(p, row);
  }
}

// Where the weights reach top_p is found in rows that are steep, flat, or full of equal logits.
TEST(Sampler, CutsLargeRowsWhereTheReferenceDoes) {
  for (const std::size_t size : {20000u, 40001u}) {
    for (const float deviation : {0.1f, 0.5f, 2.0f, 6.0f}) {
      std::vector<float> row = random_row(size, 9, deviation);
      for (const float top_p : {0.3f, 0.95f, 0.999f}) {
        for (const std::int32_t top_k : {0, 5000}) {
          SamplingParams p = plain();
          p.top_p = top_p;
          p.top_k = top_k;
          const auto found = distribution_of(Sampler(p, static_cast<TokenCount>(size), {}), row);
          const auto expected = reference(p, row);
          EXPECT_NEAR(static_cast<double>(found.size()), static_cast<double>(expected.size()), 2)
              << size << " " << deviation << " " << top_p << " " << top_k;
        }
      }
      for (float& logit : row) logit = std::round(logit * 4) / 4;
      SamplingParams p = plain();
      p.top_p = 0.8f;
      const auto found = distribution_of(Sampler(p, static_cast<TokenCount>(size), {}), row);
      EXPECT_NEAR(static_cast<double>(found.size()), static_cast<double>(reference(p, row).size()), 2) << deviation;
    }
  }
}

TEST(Sampler, LogProbabilitiesAreThoseOfTheRowAsItCame) {
  const std::vector<float> row = random_row(20000, 3);
  double sum = 0;
  for (const float logit : row) sum += std::exp(static_cast<double>(logit));
  SamplingParams p = plain();
  p.chances = 3;
  p.logit_bias = {{5, 30.0f}};
  Sampler sampler(p, 20000, {});
  SamplerScratch scratch;
  std::vector<float> copy = row;
  std::vector<TokenChance> chances;
  EXPECT_EQ(sampler.sample(copy, scratch, &chances), 5);
  ASSERT_EQ(chances.size(), 4u);
  EXPECT_NEAR(chances[0].logprob, row[5] - std::log(sum), 1e-5);
  std::vector<float> sorted = row;
  std::ranges::sort(sorted, std::greater<>());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(chances[i + 1].logprob, sorted[i] - std::log(sum), 1e-5);
}

TEST(Sampler, DrawnChancesOfALargeRowAddUp) {
  SamplingParams p = plain();
  p.top_p = 0.9f;
  p.chances = 20;
  p.chances_after = true;
  const std::vector<float> row = random_row(20000, 4, 4.0f);
  const std::map<Token, double> expected = reference(p, row);
  Sampler sampler(p, 20000, {});
  SamplerScratch scratch;
  std::vector<TokenChance> chances;
  std::vector<float> copy = row;
  sampler.sample(copy, scratch, &chances);
  ASSERT_EQ(chances.size(), 21u);
  for (const TokenChance& chance : chances) {
    ASSERT_TRUE(expected.contains(chance.token));
    EXPECT_NEAR(chance.logprob, std::log(expected.at(chance.token)), 1e-4);
  }
}

}  // namespace
}  // namespace chasqui
