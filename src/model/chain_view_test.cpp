// What a chain is not given of a large row changes nothing: the same tokens are drawn, with random parameters.
#include "model/chain_view.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "model/row_steps.h"
#include "model/sampling_parts.h"
#include "model/test_sampler.h"

namespace chasqui {
namespace {

class ChainViews : public ::testing::Test, protected Dice {
 protected:
  SamplingParams random_params() {
    SamplingParams params = plain();
    params.seed = static_cast<std::uint32_t>(random_());
    params.top_k = one_of(0, 5, 40, 700);
    params.min_p = one_of(0.0f, 0.01f, 0.3f);
    params.min_keep = one_of(0, 0, 12);
    params.top_p = one_of(1.0f, 1.0f, 0.9f);
    params.typical_p = one_of(1.0f, 1.0f, 0.8f);
    params.xtc_probability = one_of(0.0f, 0.5f);
    params.repeat_last_n = one_of(-1, 0, 64);
    params.repeat_penalty = one_of(1.0f, 1.5f);
    params.presence_penalty = one_of(0.0f, 2.0f, -2.0f);
    params.dry_multiplier = one_of(0.0f, 2.0f);
    params.dry_allowed_length = 1;
    params.dry_penalty_last_n = one_of(-1, 30);
    params.temperature = one_of(0.0f, 0.7f, 1.5f);
    if (one_of(true, false)) {
      params.steps.emplace(default_sampling_steps().begin(), default_sampling_steps().end());
      std::ranges::shuffle(*params.steps, random_);
    }
    return params;
  }
};

TEST_F(ChainViews, LeaveWhatAChainDraws) {
  constexpr TokenCount kTokens = 20000;
  int given_little = 0;
  for (unsigned i = 0; i < 300; ++i) {
    const SamplingParams params = random_params();
    if (!needs_chain(params) || (chain_view(params).most == 0 && RowSteps::of(params))) continue;
    SamplerChain whole = make_chain(params, nullptr, kTokens);
    LlamaSamplingParts parts;
    parts.chain = make_chain(params, nullptr, kTokens);
    given_little += parts.chain.view().most > 0 ? 1 : 0;
    Sampler sampler(params, kTokens, {}, &parts);
    // Of a flat row min-p leaves so much that the chain is not asked.
    const float deviation = one_of(0.5f, 3.0f);
    const bool flat_by_steps = parts.chain.view().min_p > 0 && RowSteps::of(params);
    const std::vector<float> row = random_row(kTokens, i, flat_by_steps ? 3.0f : deviation);
    std::vector<Token> said(one_of(std::size_t{5}, std::size_t{900}));
    for (Token& token : said) token = static_cast<Token>(random_() % 2000);
    said[3] = static_cast<Token>(std::ranges::max_element(row) - row.begin());
    said.push_back(said[1]);
    said.push_back(said[2]);
    sampler.accept(said);
    for (const Token token : said) whole.accept(token);
    SamplerScratch scratch;
    std::vector<Candidate> left;
    for (int drawn = 0; drawn < 5; ++drawn) {
      std::vector<float> copy = row;
      const Token expected = whole.draw(copy, left);
      ASSERT_EQ(sampler.sample(copy, scratch), expected) << i;
      sampler.accept(expected);
      whole.accept(expected);
    }
  }
  EXPECT_GT(given_little, 100);
}

}  // namespace
}  // namespace chasqui
