// The steps that look at all tokens leave what libllama's steps leave, whatever the row is like.
#include "model/whole_row_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <llama.h>

#include "core/sampling.h"
#include "model/sampling_parts.h"

namespace chasqui {
namespace {

using Row = std::vector<llama_token_data>;

struct RowKind {
  const char* name;
  float spread;
  bool ties;
};
constexpr RowKind kKinds[] = {
    {"flat", 0.01f, false}, {"usual", 3, false}, {"peaked", 12, false}, {"with ties", 3, true}, {"equal", 0, false}};

Row make_row(std::size_t size, const RowKind& kind, std::mt19937& random) {
  std::normal_distribution<float> normal(0, 1);
  Row row;
  for (std::size_t i = 0; i < size; ++i) {
    const float logit = kind.spread * normal(random);
    row.push_back({static_cast<llama_token>(i), kind.ties ? std::round(logit) : logit, 0});
  }
  return row;
}

// The tokens that a step leaves, with their logits.
std::map<llama_token, float> left(llama_sampler* step, Row row) {
  const LlamaSamplerPtr owned(step);
  llama_token_data_array array{row.data(), row.size(), -1, false};
  llama_sampler_apply(owned.get(), &array);
  std::map<llama_token, float> out;
  for (std::size_t i = 0; i < array.size; ++i) {
    if (array.data[i].logit > -INFINITY) out.emplace(array.data[i].id, array.data[i].logit);
  }
  return out;
}

class WholeRowSteps : public testing::TestWithParam<RowKind> {
 protected:
  Row row(std::size_t size) { return make_row(size, GetParam(), random_); }
  bool equal_ones() const { return GetParam().ties || GetParam().spread == 0; }

 private:
  std::mt19937 random_{5};
};

// The definition, in numbers of twice the length and sorted; libllama's sums are of floats.
std::set<llama_token> typical_of(const Row& row, double p, std::size_t least) {
  double top = row.front().logit;
  for (const llama_token_data& token : row) top = std::max(top, static_cast<double>(token.logit));
  double sum = 0;
  double entropy = 0;
  for (const llama_token_data& token : row) sum += std::exp(token.logit - top);
  for (const llama_token_data& token : row) {
    const double chance = std::exp(token.logit - top) / sum;
    if (chance > 0) entropy -= chance * std::log(chance);
  }
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < row.size(); ++i) {
    order.emplace_back(std::abs(std::log(sum) + top - row[i].logit - entropy), i);
  }
  std::ranges::sort(order);
  std::set<llama_token> out;
  double reached = 0;
  for (const auto& [distance, i] : order) {
    if (reached >= p && out.size() >= std::max<std::size_t>(least, 1)) break;
    reached += std::exp(row[i].logit - top) / sum;
    out.insert(row[i].id);
  }
  return out;
}

TEST_P(WholeRowSteps, TypicalLeavesWhatSaysAboutAsMuchAsATokenDoes) {
  for (const std::size_t size : {1u, 2u, 7u, 300u, 5000u}) {
    for (const float p : {0.1f, 0.5f, 0.9f, 0.999f}) {
      for (const int least : {0, 3}) {
        SamplingParams params;
        params.typical_p = p;
        params.min_keep = least;
        const Row tokens = row(size);
        const auto ours = left(make_typical_step(params), tokens);
        const auto right = typical_of(tokens, static_cast<double>(p), static_cast<std::size_t>(least));
        std::size_t same = 0;
        for (const auto& [token, logit] : ours) same += right.contains(token) ? 1 : 0;
        // Rounded, the last one and the one after it may change places.
        EXPECT_GE(same + 2, std::max(ours.size(), right.size())) << size << " tokens, " << p;
      }
    }
  }
}

TEST_P(WholeRowSteps, TypicalLeavesAboutAsManyAsLibllama) {
  SamplingParams params;
  params.typical_p = 0.9f;
  const Row tokens = row(1000);
  const auto ours = static_cast<double>(left(make_typical_step(params), tokens).size());
  const auto theirs = static_cast<double>(left(llama_sampler_init_typical(0.9f, 0), tokens).size());
  EXPECT_NEAR(ours, theirs, 1 + 0.01 * theirs);
}

TEST_P(WholeRowSteps, XtcLeavesWhatLibllamaLeaves) {
  for (const std::size_t size : {1u, 2u, 7u, 300u, 5000u}) {
    for (const float threshold : {0.0f, 0.05f, 0.2f, 0.6f}) {
      for (const int least : {0, 4}) {
        SamplingParams params;
        params.xtc_probability = 1;
        params.xtc_threshold = threshold;
        params.min_keep = least;
        const Row tokens = row(size);
        const auto ours = left(make_xtc_step(params), tokens);
        const auto theirs = left(llama_sampler_init_xtc(1, threshold, static_cast<std::size_t>(least), 0), tokens);
        EXPECT_EQ(ours.size(), theirs.size()) << size << " tokens, " << threshold;
        if (equal_ones()) continue;  // any of those that are as likely
        EXPECT_EQ(ours, theirs) << size << " tokens, " << threshold;
      }
    }
  }
}

TEST_P(WholeRowSteps, TemperaturesFollowTheEntropyAsWithLibllama) {
  for (const std::size_t size : {1u, 2u, 7u, 300u, 5000u}) {
    for (const float exponent : {0.5f, 1.0f, 3.0f}) {
      SamplingParams params;
      params.temperature = 0.8f;
      params.dynatemp_range = 0.5f;  // at almost 0 their entropy is of rounding
      params.dynatemp_exponent = exponent;
      const Row tokens = row(size);
      const auto ours = left(make_dynamic_temperature_step(params), tokens);
      const auto theirs = left(llama_sampler_init_temp_ext(0.8f, 0.5f, exponent), tokens);
      ASSERT_EQ(ours.size(), theirs.size()) << size << " tokens, " << exponent;
      for (const auto& [token, logit] : ours) {
        EXPECT_NEAR(logit, theirs.at(token), 1e-3 * std::max(1.0f, std::abs(logit))) << size << ", " << exponent;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, WholeRowSteps, testing::ValuesIn(kKinds), [](const auto& of) {
  std::string name = of.param.name;
  std::ranges::replace(name, ' ', '_');
  return name;
});

TEST(WholeRowSteps, AreThereWhereTheyAreAskedFor) {
  EXPECT_EQ(make_typical_step({}), nullptr);
  EXPECT_EQ(make_xtc_step({}), nullptr);
}

// A request can make them so: with a temperature near 0 before the step, or a large bias.
TEST(WholeRowSteps, SurviveLogitsWithoutBounds) {
  constexpr float kMost = std::numeric_limits<float>::max();
  std::mt19937 random(9);
  for (const std::size_t size : {2u, 20u, 3000u}) {
    Row tokens = make_row(size, kKinds[1], random);
    for (std::size_t i = 0; i < size; i += 3) tokens[i].logit = i % 2 == 0 ? INFINITY : -kMost;
    for (std::size_t i = 1; i < size; i += 5) tokens[i].logit = i % 2 == 0 ? kMost : -INFINITY;
    if (size > 2) tokens[7].logit = NAN;
    SamplingParams params;
    params.typical_p = 0.5f;
    params.xtc_probability = 1;
    params.xtc_threshold = 0.001f;
    params.temperature = 1;
    params.dynatemp_range = 0.5f;
    for (llama_sampler* const step :
         {make_typical_step(params), make_xtc_step(params), make_dynamic_temperature_step(params)}) {
      const LlamaSamplerPtr owned(step);
      Row copy = tokens;
      llama_token_data_array array{copy.data(), copy.size(), -1, false};
      llama_sampler_apply(step, &array);
      EXPECT_GE(array.size, 1u) << llama_sampler_name(step);
      EXPECT_LE(array.size, size) << llama_sampler_name(step);
    }
  }
}

// One by one as often as it says, from one seed on, also in a copy.
TEST(WholeRowSteps, XtcStrikesAsOftenAsItIsAskedTo) {
  SamplingParams params;
  params.xtc_probability = 0.25f;
  params.xtc_threshold = 0.1f;
  params.seed = 11;
  LlamaSamplerPtr step(make_xtc_step(params));
  const auto strikes = [](llama_sampler& sampler) {
    Row row = {{0, 2, 0}, {1, 1.5f, 0}, {2, 0, 0}};
    llama_token_data_array array{row.data(), row.size(), -1, false};
    llama_sampler_apply(&sampler, &array);
    return array.size < 3;
  };
  int struck = 0;
  for (int i = 0; i < 4000; ++i) struck += strikes(*step) ? 1 : 0;
  EXPECT_NEAR(struck, 1000, 110);
  const LlamaSamplerPtr copy = copy_sampler(*step);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(strikes(*step), strikes(*copy));
}

}  // namespace
}  // namespace chasqui
