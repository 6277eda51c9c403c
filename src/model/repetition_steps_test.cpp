// Our steps are held against libllama's: the same tokens before, the same row after.
#include "model/repetition_steps.h"

#include <memory>

#include <gtest/gtest.h>
#include <llama.h>

#include "model/llama_sampling_kit.h"
#include "model/llama_tokenizer.h"
#include "model/sampling_parts.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

class TokenDice {
 public:
  explicit TokenDice(std::uint32_t seed) : state_(seed) {}
  std::uint32_t below(std::uint32_t most) {
    state_ = state_ * 1664525 + 1013904223;
    return (state_ >> 8) % most;
  }

 private:
  std::uint32_t state_;
};

std::vector<float> applied(llama_sampler* step, std::size_t size) {
  std::vector<llama_token_data> row;
  for (std::size_t i = 0; i < size; ++i)
    row.push_back({static_cast<llama_token>(i), 1 - 0.01f * static_cast<float>(i), 0});
  llama_token_data_array array{row.data(), row.size(), -1, false};
  llama_sampler_apply(step, &array);
  std::vector<float> out;
  for (const llama_token_data& data : row) out.push_back(data.logit);
  return out;
}

class RepetitionSteps : public ::testing::Test {
 protected:
  // Tells both the same tokens, few of them different, and compares what they do with a row after each.
  void compare(LlamaSamplerPtr ours, LlamaSamplerPtr theirs, const std::vector<Token>& tokens,
               const std::string& what) {
    ASSERT_NE(ours, nullptr);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      llama_sampler_accept(ours.get(), tokens[i]);
      llama_sampler_accept(theirs.get(), tokens[i]);
      if (i % 40 == 20) ours = copy_sampler(*ours);
      ASSERT_EQ(applied(ours.get(), row_), applied(theirs.get(), row_)) << what << " after " << i + 1 << " tokens";
    }
  }

  LlamaSamplerPtr their_dry(const SamplingParams& params) const {
    std::vector<const char*> texts;
    for (const std::string& text : params.dry_sequence_breakers) texts.push_back(text.c_str());
    const std::int32_t back = params.dry_penalty_last_n < 0 ? 1000 : params.dry_penalty_last_n;
    return LlamaSamplerPtr(llama_sampler_init_dry(test_weights()->vocab(), params.dry_multiplier, params.dry_base,
                                                  params.dry_allowed_length, back, texts.data(), texts.size()));
  }

  LlamaSamplerPtr our_dry(const SamplingParams& params) const {
    return LlamaSamplerPtr(
        make_dry_step(params, std::make_shared<const DryBreakers>(params.dry_sequence_breakers, texts_, *tokenizer_)));
  }

  const std::shared_ptr<LlamaTokenizer> tokenizer_ = std::make_shared<LlamaTokenizer>(test_weights());
  const TokenTexts texts_{test_weights()->vocab()};
  const std::size_t row_ = static_cast<std::size_t>(tokenizer_->vocabulary());
};

TEST_F(RepetitionSteps, PenaltiesAreThoseOfLibllama) {
  for (const std::int32_t back : {1, 3, 64, -1}) {
    SamplingParams params;
    params.repeat_last_n = back;
    params.repeat_penalty = 1.3f;
    params.frequency_penalty = 0.2f;
    params.presence_penalty = -0.1f;
    TokenDice dice(static_cast<std::uint32_t>(back + 2));
    std::vector<Token> tokens;
    for (int i = 0; i < 150; ++i) tokens.push_back(static_cast<Token>(dice.below(9)));
    LlamaSamplerPtr theirs(
        llama_sampler_init_penalties(tokenizer_->vocabulary(), back < 0 ? 1000 : back, 1.3f, 0.2f, -0.1f));
    compare(LlamaSamplerPtr(make_penalties_step(params)), std::move(theirs), tokens, std::to_string(back));
  }
}

TEST_F(RepetitionSteps, DryIsThatOfLibllama) {
  const std::vector<std::string> alphabet = {"a", "b", "ab", "aab", "\n", " the", "the", ":", "*", "é"};
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    TokenDice dice(seed);
    SamplingParams params;
    params.dry_multiplier = 0.7f;
    params.dry_base = seed % 5 == 0 ? 1.0f : 1.75f;
    params.dry_allowed_length = static_cast<std::int32_t>(dice.below(4));
    params.dry_penalty_last_n = seed % 3 == 0 ? -1 : static_cast<std::int32_t>(1 + dice.below(40));
    params.dry_sequence_breakers.clear();
    for (std::uint32_t n = dice.below(4); n > 0; --n) {
      std::string& text = params.dry_sequence_breakers.emplace_back();
      for (std::uint32_t i = 1 + dice.below(5); i > 0; --i) text += alphabet[dice.below(10)];
    }
    std::string text;
    for (int i = 0; i < 60; ++i) text += alphabet[dice.below(2 + seed % 9)];
    std::vector<Token> tokens = tokenizer_->tokenize(text, AddSpecial::no, ParseSpecial::no);
    compare(our_dry(params), their_dry(params), tokens, "seed " + std::to_string(seed));
  }
}

TEST_F(RepetitionSteps, ThatDoNothingAreNone) {
  SamplingParams params;
  EXPECT_EQ(make_penalties_step(params), nullptr);
  EXPECT_EQ(make_dry_step(params, nullptr), nullptr);
  params.repeat_penalty = 2;
  params.repeat_last_n = 0;
  params.dry_multiplier = 1;
  params.dry_penalty_last_n = 0;
  EXPECT_EQ(make_penalties_step(params), nullptr);
  EXPECT_EQ(make_dry_step(params, nullptr), nullptr);
}

// What ends a repetition is looked for in the vocabulary once, however many answers there are.
TEST_F(RepetitionSteps, ShareWhatEndsARepetition) {
  SamplingKit kit(tokenizer_, test_weights()->vocab());
  SamplingParams params;
  params.dry_multiplier = 1;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(kit.prepare(params, nullptr));
  EXPECT_EQ(kit.breakers_made(), 1u);
  params.dry_sequence_breakers = {"x"};
  ASSERT_TRUE(kit.prepare(params, nullptr));
  EXPECT_EQ(kit.breakers_made(), 2u);
}

}  // namespace
}  // namespace chasqui
