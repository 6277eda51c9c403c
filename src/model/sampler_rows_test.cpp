// The sampler on rows of large vocabularies, which it does not list.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "model/test_sampler.h"

namespace chasqui {
namespace {

// Draws as often as `expected` says: classes of tokens with equal probability, compared by a chi-square test.
void expect_draws_of(const SamplingParams& p, const std::vector<float>& row, const std::map<Token, double>& expected) {
  constexpr int kDraws = 20000;
  constexpr std::size_t kClasses = 20;
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

void expect_draws_of(const SamplingParams& p, const std::vector<float>& row) {
  expect_draws_of(p, row, reference(p, row));
}

// Whatever of a large vocabulary may be drawn.
TEST(Sampler, DrawsFromTheRowFollowTheReference) {
  const std::vector<float> row = random_row(12000, 5, 1.5f);
  for (const std::int32_t top_k : {0, 600, 5000, 9000}) {
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
    for (const float temperature : {1.0f, 3.0f}) {
      p.top_p = top_p;
      p.temperature = temperature;
      expect_draws_of(p, row);
    }
  }
}

// … where the temperature makes likely what top-p leaves out, in rows that are flat and steep.
TEST(Sampler, HotDrawsFollowTheReference) {
  for (const float deviation : {0.3f, 2.5f}) {
    const std::vector<float> row = random_row(40001, 7, deviation);
    for (const auto& [top_p, temperature] : {std::pair{0.95f, 1.2f}, {0.4f, 8.0f}}) {
      SamplingParams p = plain();
      p.top_p = top_p;
      p.temperature = temperature;
      expect_draws_of(p, row);
    }
  }
}

// … where few tokens weigh more than top-p keeps, whatever all the others weigh, and where they nearly do.
TEST(Sampler, DrawsFromAPeakedRowFollowTheReference) {
  for (const float peak : {9.0f, 14.0f, 25.0f}) {
    std::vector<float> row = random_row(20000, 10, 1.0f);
    for (std::size_t i = 0; i < 12; ++i) row[i * 1571] += peak - 0.3f * static_cast<float>(i);
    row[1571] = row[3 * 1571];  // as likely
    for (const float top_p : {0.3f, 0.9f, 0.98f}) {
      for (const float temperature : {0.8f, 1.6f}) {
        SamplingParams p = plain();
        p.top_p = top_p;
        p.temperature = temperature;
        expect_draws_of(p, row);
      }
    }
  }
}

TEST(Sampler, TopNSigmaKeepsWhatTheReferenceDoes) {
  for (const std::size_t size : {8u, 300u, 20001u}) {
    const std::vector<float> row = random_row(size, 12, 2.0f);
    for (const std::int32_t top_k : {0, 5, 700, 5000}) {
      for (const float sigma : {0.3f, 1.0f, 2.5f}) {
        for (const float top_p : {1.0f, 0.7f}) {
          SamplingParams p = plain();
          p.top_n_sigma = sigma;
          p.top_k = top_k;
          p.top_p = top_p;
          const auto found = distribution_of(Sampler(p, static_cast<TokenCount>(size), {}), row);
          const auto expected = reference(p, row);
          EXPECT_NEAR(static_cast<double>(found.size()), static_cast<double>(expected.size()), size > 1000 ? 2 : 0)
              << size << " " << top_k << " " << sigma << " " << top_p;
        }
      }
    }
  }
  const std::vector<float> row = random_row(12000, 13, 2.0f);
  for (const std::int32_t top_k : {0, 40, 700, 5000}) {
    SamplingParams p = plain();
    p.top_n_sigma = 1.7f;
    p.top_k = top_k;
    expect_draws_of(p, row);
    p.top_p = 0.8f;
    expect_draws_of(p, row);
  }
}

// With a learning rate of 0 those that surprise by twice the target at most; the most likely one where there is none.
TEST(Sampler, MirostatDrawsWhatSurprisesLittle) {
  for (const float deviation : {0.5f, 3.0f}) {
    const std::vector<float> row = random_row(12000, 11, deviation);
    for (const float tau : {2.0f, 6.6f, 20.0f}) {
      SamplingParams p = plain();
      p.temperature = 1.3f;
      std::map<Token, double> expected = reference(p, row);
      std::erase_if(expected, [&](const auto& each) { return -std::log2(each.second) > 2 * static_cast<double>(tau); });
      double left = 0;
      for (const auto& each : expected) left += each.second;
      for (auto& each : expected) each.second /= left;
      if (expected.empty()) expected[static_cast<Token>(std::ranges::max_element(row) - row.begin())] = 1;
      p.mirostat = 2;
      p.mirostat_tau = tau;
      p.mirostat_eta = 0;
      p.top_k = 3;  // it comes instead of that
      p.repeat_penalty = 2;
      expect_draws_of(p, row, expected);
    }
  }
}

TEST(Sampler, MirostatComesToItsTarget) {
  SamplingParams p = plain();
  p.mirostat = 2;
  p.mirostat_tau = 4;
  p.chances = 0;
  p.chances_after = true;
  Sampler sampler(p, 12000, {});
  SamplerScratch scratch;
  std::vector<TokenChance> chances;
  double surprise = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> row = random_row(12000, static_cast<unsigned>(i % 20), 2.0f);
    sampler.sample(row, scratch, &chances);
    surprise -= static_cast<double>(chances.front().logprob) / std::numbers::ln2;
  }
  EXPECT_NEAR(surprise / kDraws, 4.0, 0.1);
  p.temperature = 0;
  std::vector<float> row = random_row(12000, 1);
  EXPECT_EQ(Sampler(p, 12000, {}).sample(row, scratch), std::ranges::max_element(row) - row.begin());
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

// A grammar or a bias may have banned nearly all: none of the others is left out.
TEST(Sampler, TopKThatIsMoreThanThereAreKeepsAll) {
  constexpr float kBanned = -std::numeric_limits<float>::infinity();
  std::vector<float> row(16384, kBanned);
  for (std::size_t i = 0; i < 256; ++i) row[64 * i] = -0.01f * static_cast<float>(i);
  SamplingParams p = plain();
  p.top_k = 700;
  EXPECT_EQ(distribution_of(Sampler(p, 16384, {}), row).size(), 256u);
  for (unsigned seed = 0; seed < 60; ++seed) {
    const std::vector<float> all = random_row(32000, seed, 1.0f);
    std::vector<float> few(all.size(), kBanned);
    std::mt19937 generator(seed);
    for (int i = 0; i < 1000; ++i) {
      const std::size_t token = generator() % all.size();
      few[token] = all[token];
    }
    const auto left = static_cast<std::size_t>(std::ranges::count_if(few, [](float f) { return f > kBanned; }));
    p.top_k = 5000;
    EXPECT_EQ(distribution_of(Sampler(p, 32000, {}), few).size(), left) << seed;
    p.top_k = 900;
    EXPECT_EQ(distribution_of(Sampler(p, 32000, {}), few).size(), std::min<std::size_t>(left, 900)) << seed;
  }
}

// A thread's buffers serve one request after the other.
TEST(Sampler, KnowsNothingOfTheRowBefore) {
  SamplerScratch scratch;
  std::vector<float> row(1000, -5.0f);
  row[7] = row[9] = 5;
  SamplingParams half = plain();
  half.top_p = 0.3f;
  EXPECT_EQ(Sampler(half, 1000, {}).distribution(row, scratch).size(), 1u) << "of two that are equal";
  std::vector<float> next(1000, -5.0f);
  next[9] = 5;
  next[7] = 4;
  SamplingParams two = plain();
  two.min_p = 0.9f;
  two.min_keep = 2;
  const auto kept = Sampler(two, 1000, {}).distribution(next, scratch);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].token, 9);
  EXPECT_EQ(kept[1].token, 7);
}

TEST(Sampler, SaysTheSameWhetherItTellsHowLikelyThatWas) {
  const std::vector<float> row = random_row(12000, 8, 1.0f);
  for (const std::int32_t top_k : {0, 3000}) {
    for (const float temperature : {1.0f, 1.7f}) {
      SamplingParams p = plain();
      p.top_k = top_k;
      p.top_p = 0.9f;
      p.temperature = temperature;
      const std::map<Token, double> expected = reference(p, row);
      std::vector<std::vector<Token>> said(2);
      for (const bool tells : {false, true}) {
        p.chances_after = tells;
        p.chances = tells ? 2 : -1;
        Sampler sampler(p, 12000, {});
        SamplerScratch scratch;
        std::vector<TokenChance> chances;
        for (int i = 0; i < 300; ++i) {
          std::vector<float> copy = row;
          said[tells ? 1 : 0].push_back(sampler.sample(copy, scratch, &chances));
          if (!tells) continue;
          ASSERT_EQ(chances.size(), 3u);
          EXPECT_EQ(chances[0].token, said[1].back());
          for (const TokenChance& c : chances) EXPECT_NEAR(c.logprob, std::log(expected.at(c.token)), 1e-4);
        }
      }
      EXPECT_EQ(said[0], said[1]);
    }
  }
}

// What a row of the most likely tokens was drawn from leaves nothing behind for the next row.
TEST(Sampler, TokensOfALongTopKAreThoseOfTheRow) {
  SamplingParams p = plain();
  p.top_k = 700;
  p.temperature = 30;
  Sampler sampler(p, 20000, {});
  SamplerScratch scratch;
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::vector<float> row = random_row(20000, seed);
    const std::map<Token, double> expected = reference(p, row);
    EXPECT_TRUE(expected.contains(sampler.sample(row, scratch)));
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
