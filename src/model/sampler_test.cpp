#include "model/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <gtest/gtest.h>
#include <llama.h>

#include "model/test_sampler.h"

namespace chasqui {
namespace {

constexpr float kSampledInfinity = std::numeric_limits<float>::infinity();
constexpr float kSampledNan = std::numeric_limits<float>::quiet_NaN();

void expect_equal(const std::map<Token, double>& a, const std::map<Token, double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [token, probability] : a) {
    const auto other = b.find(token);
    ASSERT_NE(other, b.end()) << token;
    EXPECT_NEAR(probability, other->second, tolerance) << token;
  }
}

std::vector<SamplingParams> many_params() {
  std::vector<SamplingParams> all;
  for (std::int32_t top_k : {0, 1, 40, 5000}) {
    for (float top_p : {1.0f, 0.95f, 0.5f, 0.0f}) {
      for (float min_p : {0.0f, 0.05f, 0.9f}) {
        for (std::int32_t min_keep : {0, 3}) {
          SamplingParams p = plain();
          p.top_k = top_k;
          p.top_p = top_p;
          p.min_p = min_p;
          p.min_keep = min_keep;
          p.temperature = 0.7f;
          all.push_back(p);
        }
      }
    }
  }
  return all;
}

TEST(Sampler, DistributionIsTheReferenceOne) {
  unsigned seed = 0;
  for (const SamplingParams& p : many_params()) {
    for (float deviation : {0.3f, 3.0f}) {
      const std::vector<float> row = random_row(3000, ++seed, deviation);
      const std::map<Token, double> found = distribution_of(Sampler(p, 3000, {}), row);
      expect_equal(found, reference(p, row), 1e-6);
      const double sum = std::accumulate(found.begin(), found.end(), 0.0,
                                         [](double s, const auto& entry) { return s + entry.second; });
      EXPECT_NEAR(sum, 1.0, 1e-6);
    }
  }
}

// llama.cpp's own chain on the same row.
std::map<Token, double> llama_distribution(const SamplingParams& p, const std::vector<Token>& accepted,
                                           const std::vector<float>& row) {
  const auto width = static_cast<std::int32_t>(row.size());
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  std::vector<llama_logit_bias> bias;
  for (const LogitBias& b : p.logit_bias) bias.push_back({b.token, b.bias});
  llama_sampler_chain_add(chain,
                          llama_sampler_init_logit_bias(width, static_cast<std::int32_t>(bias.size()), bias.data()));
  llama_sampler_chain_add(chain, llama_sampler_init_penalties(width, p.repeat_last_n, p.repeat_penalty,
                                                              p.frequency_penalty, p.presence_penalty));
  llama_sampler_chain_add(chain, llama_sampler_init_top_k(p.top_k));
  llama_sampler_chain_add(chain, llama_sampler_init_top_p(p.top_p, static_cast<std::size_t>(p.min_keep)));
  llama_sampler_chain_add(chain, llama_sampler_init_min_p(p.min_p, static_cast<std::size_t>(p.min_keep)));
  llama_sampler_chain_add(chain, llama_sampler_init_temp(p.temperature));
  for (Token token : accepted) llama_sampler_accept(chain, token);

  std::vector<llama_token_data> data;
  for (std::size_t i = 0; i < row.size(); ++i) data.push_back({static_cast<Token>(i), row[i], 0.0f});
  llama_token_data_array array{data.data(), data.size(), -1, false};
  llama_sampler_apply(chain, &array);
  llama_sampler_free(chain);

  float top = -kSampledInfinity;
  for (std::size_t i = 0; i < array.size; ++i) top = std::max(top, array.data[i].logit);
  double sum = 0;
  std::map<Token, double> result;
  for (std::size_t i = 0; i < array.size; ++i) sum += std::exp(static_cast<double>(array.data[i].logit - top));
  for (std::size_t i = 0; i < array.size; ++i) {
    result[array.data[i].id] = std::exp(static_cast<double>(array.data[i].logit - top)) / sum;
  }
  return result;
}

TEST(Sampler, DistributionIsThatOfLlamaCpp) {
  unsigned seed = 100;
  std::vector<Token> accepted;
  for (Token i = 0; i < 200; ++i) accepted.push_back(i * i % 97);
  for (SamplingParams p : many_params()) {
    p.logit_bias = {{5, 2.5f}, {6, -kSampledInfinity}, {7, -1.0f}};
    p.repeat_last_n = 64;
    p.repeat_penalty = 1.3f;
    p.frequency_penalty = 0.2f;
    p.presence_penalty = 0.1f;
    const std::vector<float> row = random_row(2000, ++seed);
    Sampler sampler(p, 2000, {});
    sampler.accept(accepted);
    std::map<Token, double> theirs = llama_distribution(p, accepted, row);
    theirs.erase(6);  // banned, and still listed there with probability 0 when nothing else cuts it
    expect_equal(distribution_of(sampler, row), theirs, 1e-5);
  }
}

TEST(Sampler, PenaltiesByHand) {
  SamplingParams p = plain();
  p.repeat_last_n = 3;
  p.repeat_penalty = 2.0f;
  p.frequency_penalty = 0.5f;
  p.presence_penalty = 0.25f;
  Sampler sampler(p, 4, {});
  sampler.accept(std::vector<Token>{2, 2, 2, 0, 1, 0});  // the window holds 0 1 0
  std::vector<float> row{4.0f, -4.0f, 1.0f, 1.0f};
  SamplerScratch scratch;
  sampler.distribution(row, scratch);
  EXPECT_FLOAT_EQ(row[0], 4.0f / 2 - 2 * 0.5f - 0.25f);
  EXPECT_FLOAT_EQ(row[1], -4.0f * 2 - 0.5f - 0.25f);
  EXPECT_FLOAT_EQ(row[2], 1.0f);
  EXPECT_FLOAT_EQ(row[3], 1.0f);
}

TEST(Sampler, PenaltyWindowOfAllTokens) {
  SamplingParams p = plain();
  p.repeat_last_n = -1;
  p.frequency_penalty = 1.0f;
  Sampler sampler(p, 2, {});
  for (int i = 0; i < 500; ++i) sampler.accept(Token{1});
  std::vector<float> row{0.0f, 1000.0f};
  SamplerScratch scratch;
  sampler.distribution(row, scratch);
  EXPECT_FLOAT_EQ(row[1], 500.0f);
}

TEST(Sampler, GreedyTakesTheFirstOfTheMostLikely) {
  SamplingParams p = plain();
  p.temperature = 0.0f;
  Sampler sampler(p, 5, {});
  SamplerScratch scratch;
  std::vector<float> row{1, 3, 2, 3, 0};
  EXPECT_EQ(sampler.sample(row, scratch), 1);
  EXPECT_EQ(sampler.distribution(row, scratch).size(), 1u);
}

std::vector<Token> draw(std::uint32_t seed, int count) {
  SamplingParams p;
  p.seed = seed;
  Sampler sampler(p, 1000, {});
  SamplerScratch scratch;
  std::vector<Token> tokens;
  for (int i = 0; i < count; ++i) {
    std::vector<float> row = random_row(1000, static_cast<unsigned>(i));
    tokens.push_back(sampler.sample(row, scratch));
  }
  return tokens;
}

TEST(Sampler, SameSeedSameTokens) {
  EXPECT_EQ(draw(7, 50), draw(7, 50));
  EXPECT_NE(draw(7, 50), draw(8, 50));
}

TEST(Sampler, DrawsFollowTheDistribution) {
  SamplingParams p = plain();
  Sampler sampler(p, 3, {});
  SamplerScratch scratch;
  std::vector<int> counts(3);
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> row{0.0f, std::log(2.0f), std::log(7.0f)};
    ++counts[static_cast<std::size_t>(sampler.sample(row, scratch))];
  }
  // Five standard deviations.
  EXPECT_NEAR(counts[0], 0.1 * kDraws, 5 * std::sqrt(0.09 * kDraws));
  EXPECT_NEAR(counts[1], 0.2 * kDraws, 5 * std::sqrt(0.16 * kDraws));
  EXPECT_NEAR(counts[2], 0.7 * kDraws, 5 * std::sqrt(0.21 * kDraws));
}

TEST(Sampler, IgnoreEosBansEveryEndToken) {
  SamplingParams p = plain();
  p.ignore_eos = true;
  const std::vector<Token> ends{1, 2};
  for (float temperature : {0.0f, 1.0f}) {
    p.temperature = temperature;
    Sampler sampler(p, 4, ends);
    SamplerScratch scratch;
    std::vector<float> row{0.0f, 50.0f, 40.0f, 1.0f};
    const std::map<Token, double> found = distribution_of(sampler, row);
    EXPECT_EQ(found.count(1) + found.count(2), 0u);
    const Token token = sampler.sample(row, scratch);
    EXPECT_TRUE(token == 0 || token == 3);
  }
}

TEST(Sampler, SurvivesRowsThatAreNoNumbers) {
  SamplerScratch scratch;
  for (float temperature : {0.0f, 0.8f, 1e-30f, 1e30f}) {
    SamplingParams p;
    p.temperature = temperature;
    p.seed = 3;
    p.logit_bias = {{0, -kSampledInfinity}};
    Sampler sampler(p, 200, {});
    for (float value : {kSampledNan, -kSampledInfinity}) {
      std::vector<float> row(200, value);
      EXPECT_EQ(sampler.sample(row, scratch), 1);  // 0 is banned
      row.assign(200, value);
      row[150] = -3.0f;
      EXPECT_EQ(sampler.sample(row, scratch), 150);
    }
    std::vector<float> row(200, 1.0f);
    row[99] = kSampledInfinity;
    EXPECT_EQ(sampler.sample(row, scratch), 99);
    row.assign(200, std::numeric_limits<float>::max());
    EXPECT_NE(sampler.sample(row, scratch), 0);
  }
}

TEST(Sampler, EverythingBannedStillGivesAToken) {
  SamplingParams p = plain();
  p.logit_bias = {{0, -kSampledInfinity}, {1, -kSampledInfinity}};
  Sampler sampler(p, 2, {});
  SamplerScratch scratch;
  std::vector<float> row{1, 2};
  EXPECT_EQ(sampler.sample(row, scratch), 0);
}

}  // namespace
}  // namespace chasqui
