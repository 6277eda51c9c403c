// What the steps leave of a large row is what a chain of the same steps leaves of a list of all its tokens, whatever
// the row, the parameters and the order are.
#include "model/row_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "model/sampling_parts.h"
#include "model/test_sampler.h"

namespace chasqui {
namespace {

using Chances = std::map<Token, double>;

Chances of_chain(const SamplingParams& params, const std::vector<float>& row) {
  SamplerChain chain = make_chain(params, nullptr, static_cast<TokenCount>(row.size()));
  std::vector<Candidate> left;
  chain.draw(row, left);
  Chances out;
  for (const Candidate& c : left) out[c.token] = c.probability;
  return out;
}

Chances of_steps(const SamplingParams& params, std::vector<float> values, const RowKernels& kernels) {
  const auto steps = RowSteps::of(params);
  if (!steps) return {};
  LogitRow row(kernels);
  LogitCut cut;
  TypicalCut typical;
  std::vector<Candidate> list;
  row.look(values);
  const RowSteps::Left left = steps->narrow(row, {cut, typical, list}, 0.25);
  if (left.certain) return {{row.largest(), 1.0}};
  row.at_least(left.least, list);
  Chances out;
  double sum = 0;
  for (const Candidate& c : list)
    sum += out[c.token] = std::exp((c.logit - row.top()) * static_cast<double>(left.scale));
  for (auto& [token, chance] : out) chance /= sum;
  return out;
}

// Half of the sum of all differences: how often draws from the one could not be draws from the other.
double distance(const Chances& a, const Chances& b) {
  double sum = 0;
  for (const auto& [token, chance] : a) sum += std::abs(chance - (b.contains(token) ? b.at(token) : 0.0));
  for (const auto& [token, chance] : b) sum += a.contains(token) ? 0.0 : chance;
  return sum / 2;
}

class StepsOfRows : public ::testing::Test, protected Dice {
 protected:
  SamplingParams random_params() {
    SamplingParams params = plain();
    params.top_n_sigma = one_of(-1.0f, -1.0f, -1.0f, 1.5f);
    params.top_k = one_of(0, 0, 30, 900, 5000);
    params.typical_p = one_of(1.0f, 0.1f, 0.5f, 0.9f, 0.999f);
    params.top_p = one_of(1.0f, 1.0f, 0.3f, 0.9f);
    params.min_p = one_of(0.0f, 0.0f, 0.02f, 0.4f);
    params.min_keep = one_of(0, 0, 0, 1, 20);
    params.xtc_probability = one_of(0.0f, 0.0f, 1.0f);
    params.xtc_threshold = one_of(0.0f, 0.0001f, 0.02f, 0.2f, 0.6f);
    params.temperature = one_of(0.0f, 0.6f, 1.0f, 1.8f);
    // Behind a temperature of 0, XTC with a threshold of 0 chooses among the tokens that were made impossible.
    if (params.temperature == 0) params.xtc_threshold = 0.1f;
    params.dynatemp_range = one_of(0.0f, 0.0f, 0.5f, 2.0f);
    params.dynatemp_exponent = one_of(0.5f, 1.0f, 2.0f);
    if (one_of(0, 1, 2) == 0) {
      params.steps.emplace(default_sampling_steps().begin(), default_sampling_steps().end());
      std::ranges::shuffle(*params.steps, random_);
    }
    return params;
  }
};

TEST_F(StepsOfRows, LeaveWhatAChainLeaves) {
  constexpr double kRounding = 2e-3;  // floats put a token or two on the other side of where a row is cut
  int compared = 0;
  double sum = 0;
  for (unsigned i = 0; i < 600; ++i) {
    const SamplingParams params = random_params();
    const std::vector<float> row = random_row(one_of(300u, 3001u, 20000u), i, one_of(0.3f, 3.0f, 9.0f));
    if (!RowSteps::of(params)) continue;
    ++compared;
    const Chances expected = of_chain(params, row);
    for (const RowKernels* kernels : all_row_kernels()) {
      if (!kernels->usable()) continue;
      const double far = distance(of_steps(params, row, *kernels), expected);
      sum += far;
      // Where hardly any tokens are left, one of them is much; there what cuts has to be the same to the bit.
      ASSERT_LT(far, std::max(kRounding, 2.1 / static_cast<double>(expected.size()))) << i << ' ' << kernels->name;
    }
  }
  EXPECT_GT(compared, 300);
  EXPECT_LT(sum / compared, 1e-3);
}

TEST_F(StepsOfRows, KeepAllThatIsEquallyTypical) {
  SamplingParams params = plain();
  params.typical_p = 0.5f;
  const std::vector<float> flat(5000, 1.5f);
  EXPECT_EQ(of_steps(params, flat, row_kernels()).size(), flat.size());
  std::vector<float> certain(5000, -40.0f);
  certain[77] = 20;
  EXPECT_EQ(of_steps(params, certain, row_kernels()), (Chances{{77, 1.0}}));
  std::vector<float> banned(5000, LogitRow::kBanned);
  banned[3] = banned[4999] = 0;
  EXPECT_EQ(of_steps(params, banned, row_kernels()).size(), 2u);
  std::vector<float> broken(5000, std::numeric_limits<float>::quiet_NaN());
  broken[8] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(of_steps(params, broken, row_kernels()), (Chances{{8, 1.0}}));
  std::vector<float> infinite = random_row(5000, 1);
  infinite[8] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(of_steps(params, infinite, row_kernels()), (Chances{{8, 1.0}}));
  params.min_keep = 2;
  EXPECT_GE(of_steps(params, infinite, row_kernels()).size(), 2u);
}

TEST_F(StepsOfRows, LeaveATokenOfWhateverSize) {
  SamplingParams params = plain();
  for (const float p : {0.0f, 1e-30f}) {
    params.typical_p = p;
    EXPECT_EQ(of_steps(params, std::vector<float>(5000, 1.5f), row_kernels()).size(), 5000u);
    EXPECT_EQ(of_steps(params, random_row(5000, 2), row_kernels()).size(), 1u);
  }
  params.typical_p = 1;
  params.top_p = 0.001f;
  params.min_keep = 500;
  params.steps = std::vector{SamplingStep::temperature, SamplingStep::top_p};
  EXPECT_EQ(of_steps(params, std::vector<float>(20000, 1.5f), row_kernels()).size(), 500u);
}

TEST_F(StepsOfRows, LeaveOutWhatIsLikely) {
  SamplingParams params = plain();
  params.xtc_probability = 0.5f;  // of_steps() draws 0.25
  params.xtc_threshold = 0.1f;
  std::vector<float> row(5000, 0.0f);
  row[10] = row[20] = row[4990] = 10;
  const Chances left = of_steps(params, row, row_kernels());
  EXPECT_FALSE(left.contains(10) || left.contains(20));
  EXPECT_TRUE(left.contains(4990));
  params.xtc_probability = 0.2f;
  EXPECT_EQ(of_steps(params, row, row_kernels()).size(), row.size());
}

TEST_F(StepsOfRows, AreNotForWhatNeedsAList) {
  const auto with = [](std::vector<SamplingStep> steps) {
    SamplingParams params = plain();
    params.top_p = 0.5f;
    params.top_n_sigma = 1;
    params.dry_multiplier = 1;
    params.steps = std::move(steps);
    return RowSteps::of(params);
  };
  using enum SamplingStep;
  EXPECT_TRUE(with({dry, top_n_sigma, top_p, temperature}));
  EXPECT_FALSE(with({top_p, dry}));
  EXPECT_FALSE(with({top_p, top_n_sigma}));
  EXPECT_FALSE(with({infill}));
  EXPECT_FALSE(with({adaptive_p}));
  EXPECT_TRUE(with({min_p, temperature, top_p}));  // min-p is off
  SamplingParams dynamic = plain();
  dynamic.top_n_sigma = 1;
  dynamic.dynatemp_range = 0.5f;
  EXPECT_FALSE(RowSteps::of(dynamic));
}

class SamplersInSteps : public ::testing::Test {
 protected:
  static constexpr TokenCount kTokens = 20000;

  static Sampler sampler_of(const SamplingParams& params) {
    LlamaSamplingParts parts;
    parts.chain = make_chain(params, nullptr, kTokens);
    return Sampler(params, kTokens, {}, &parts);
  }
  SamplerScratch scratch_;
};

// Where typical-p leaves little, where it leaves most and the drawn token is looked at, and where it leaves out the
// most likely one.
TEST_F(SamplersInSteps, DrawAsOftenAsTheChainSays) {
  using enum SamplingStep;
  constexpr int kDraws = 8000;
  for (const float deviation : {9.0f, 14.0f}) {
    const std::vector<float> row = random_row(kTokens, 3, deviation);
    for (const auto& [typical_part, temperature_before] : {std::pair{0.6f, false}, {0.75f, false}, {0.95f, true}}) {
      for (const float degrees : {0.8f, 1.3f}) {
        SamplingParams params = plain();
        params.typical_p = typical_part;
        params.temperature = degrees;
        if (temperature_before) params.steps = std::vector{temperature, typical_p};
        const Chances expected = of_chain(params, row);
        Sampler sampler = sampler_of(params);
        Chances seen;
        for (int i = 0; i < kDraws; ++i) {
          std::vector<float> copy = row;
          seen[sampler.sample(copy, scratch_)] += 1.0 / kDraws;
        }
        EXPECT_LT(distance(seen, expected), 0.05) << deviation << ' ' << typical_part << ' ' << degrees;
      }
    }
  }
}

TEST_F(SamplersInSteps, DrawTheSameWhetherTheyTellHowLikelyThatWas) {
  SamplingParams params = plain();
  params.typical_p = 0.8f;
  const std::vector<float> row = random_row(kTokens, 4, 2.0f);
  const Chances expected = of_chain(params, row);
  Sampler silent = sampler_of(params);
  params.chances = 2;
  params.chances_after = true;
  Sampler telling = sampler_of(params);
  std::vector<TokenChance> chances;
  for (int i = 0; i < 100; ++i) {
    std::vector<float> copy = row;
    std::vector<float> other = row;
    ASSERT_EQ(silent.sample(copy, scratch_), telling.sample(other, scratch_, &chances));
    ASSERT_EQ(chances.size(), 3u);
    for (const TokenChance& c : chances) EXPECT_NEAR(c.logprob, std::log(expected.at(c.token)), 1e-4);
  }
}

// Penalties and DRY in any place that comes first, beside steps that are off.
TEST_F(SamplersInSteps, PenalizeAsTheChainDoes) {
  using enum SamplingStep;
  const std::vector<std::vector<SamplingStep>> orders = {{penalties, dry, typical_p},
                                                         {top_k, penalties, temperature, typical_p},
                                                         {min_p, dry, top_n_sigma, penalties, typical_p}};
  for (unsigned i = 0; i < 60; ++i) {
    SamplingParams params = plain();
    params.steps = orders[i % orders.size()];
    params.typical_p = 0.5f;
    params.repeat_last_n = i % 2 == 0 ? -1 : 20;
    params.repeat_penalty = 1.3f;
    params.presence_penalty = 2;
    params.dry_multiplier = i % 4 == 0 ? 0.0f : 3.0f;
    params.dry_allowed_length = 1;
    params.dry_penalty_last_n = i % 5 == 0 ? 0 : -1;
    params.chances = 20;
    params.chances_after = true;
    Sampler sampler = sampler_of(params);
    SamplerChain chain = make_chain(params, nullptr, kTokens);
    std::mt19937 random(i);
    std::vector<float> row = random_row(kTokens, i, 3.0f);
    for (int said = 0; said < 200; ++said) {
      const auto token = static_cast<Token>(random() % 40);
      row[static_cast<std::size_t>(token)] = 9 + 0.013f * static_cast<float>(token);
      sampler.accept(token);
      chain.accept(token);
    }
    std::vector<Candidate> left;
    chain.draw(row, left);
    std::vector<TokenChance> chances;
    sampler.sample(row, scratch_, &chances);
    for (const TokenChance& each : chances) {
      const auto expected = std::ranges::find(left, each.token, &Candidate::token);
      ASSERT_NE(expected, left.end()) << i;
      ASSERT_NEAR(std::exp(static_cast<double>(each.logprob)), expected->probability, 2e-4) << i;
    }
  }
}

TEST_F(SamplersInSteps, ChangeTheLogitsOfWhatWasSaid) {
  SamplingParams params = plain();
  params.xtc_probability = 0.5f;
  params.xtc_threshold = 0.5f;  // off, as one token weighs more than that
  params.presence_penalty = 100;
  params.chances = 2;
  Sampler sampler = sampler_of(params);
  params.top_k = 0;
  std::vector<float> row = random_row(kTokens, 3, 1.0f);
  row[5] = 40;
  row[6] = 20;
  const std::vector<float> whole = row;
  std::vector<TokenChance> chances;
  EXPECT_EQ(sampler.sample(row, scratch_, &chances), 5);
  sampler.accept(5);
  EXPECT_EQ(sampler.sample(row, scratch_, &chances), 6);
  EXPECT_EQ(row, whole);  // what it tells is as the model says it
  ASSERT_EQ(chances.size(), 3u);
  EXPECT_NEAR(chances[0].logprob, -20, 0.01);
  EXPECT_EQ(chances[1].token, 5);
}

TEST_F(SamplersInSteps, TellWhatTheyDrewFrom) {
  SamplingParams params = plain();
  params.typical_p = 0.9f;
  params.temperature = 0.5f;
  params.chances = 3;
  params.chances_after = true;
  std::vector<float> row = random_row(kTokens, 4, 9.0f);
  const Chances expected = of_chain(params, row);
  std::vector<TokenChance> chances;
  const Token token = sampler_of(params).sample(row, scratch_, &chances);
  ASSERT_EQ(chances.front().token, token);
  for (const TokenChance& each : chances) {
    EXPECT_NEAR(std::exp(static_cast<double>(each.logprob)), expected.at(each.token), 1e-4);
  }
}

}  // namespace
}  // namespace chasqui
