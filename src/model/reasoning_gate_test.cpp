// Reasoning that is ended after its budget, with and without a grammar beside it.
#include "model/reasoning_gate.h"

#include <gtest/gtest.h>

#include "model/llama_tokenizer.h"
#include "model/sampler.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

constexpr TokenCount kVocabulary = 8;

// Without a vocabulary that llama-common could read.
class Numbers final : public Tokenizer {
 public:
  std::vector<Token> tokenize(std::string_view, AddSpecial, ParseSpecial) const override { return {}; }
  std::string_view piece(Token) const override { return "x"; }
  std::string_view special_piece(Token) const override { return "x"; }
  bool is_end_of_generation(Token) const override { return false; }
  std::span<const Token> end_of_generation_tokens() const override { return {}; }
  TokenCount vocabulary() const override { return kVocabulary; }
  std::size_t piece_bytes_max() const override { return 1; }
};

// The tokens of a sampler that would always say 0, under a limit of its reasoning: 1 begins, 2 3 end it.
std::vector<Token> said_under(ReasoningLimit limit, int count, float temperature = 0) {
  limit.begin = {1};
  limit.ends = {{2, 3}};
  limit.forced = {5, 2, 3};
  SamplingParams params;
  params.temperature = temperature;
  params.seed = 1;
  const SamplingPartsPtr parts = limit_reasoning(SamplingPartsPtr(), limit, Numbers());
  Sampler sampler(params, kVocabulary, {}, parts.get());
  SamplerScratch scratch;
  std::vector<Token> out;
  for (int i = 0; i < count; ++i) {
    std::vector<float> row = {90, 0, 0, 0, 0, 0, 0, 0};
    out.push_back(sampler.sample(row, scratch));
    sampler.accept(out.back());
  }
  return out;
}

ReasoningLimit limit_of(TokenCount tokens, std::vector<Token> begun) {
  ReasoningLimit limit;
  limit.tokens = tokens;
  limit.begun = std::move(begun);
  return limit;
}

TEST(ReasoningGate, EndsTheReasoningThatThePromptBeganAfterItsBudget) {
  for (const float temperature : {0.0f, 1.0f}) {
    EXPECT_EQ(said_under(limit_of(2, {4, 1}), 7, temperature), (std::vector<Token>{0, 0, 5, 2, 3, 0, 0}));
    EXPECT_EQ(said_under(limit_of(0, {1}), 5, temperature), (std::vector<Token>{5, 2, 3, 0, 0}));
  }
}

TEST(ReasoningGate, LeavesAnAnswerWithoutReasoningAlone) {
  EXPECT_EQ(said_under(limit_of(1, {4}), 4), (std::vector<Token>{0, 0, 0, 0}));
  EXPECT_EQ(said_under(limit_of(3, {1, 2, 3}), 4), (std::vector<Token>{0, 0, 0, 0}));
}

TEST(ReasoningGate, CountsAgainWhereTheModelThinksAgain) {
  ReasoningLimit limit = limit_of(1, {});
  limit.begin = {1};
  limit.ends = {{2}};
  limit.forced = {2};
  GrammarGate gate = limit_reasoning(GrammarGate(), limit, Numbers());
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_TRUE(gate.allows(7));
    gate.accept(1);
    EXPECT_TRUE(gate.allows(7));
    gate.accept(0);
    EXPECT_TRUE(gate.allows(2));
    EXPECT_FALSE(gate.allows(7)) << "only the end may come";
    gate.accept(2);
  }
  EXPECT_TRUE(gate.allows(7));
}

TEST(ReasoningGate, EndsOnRequest) {
  const auto end_now = std::make_shared<Flag>();
  ReasoningLimit limit = limit_of(1000, {});
  limit.begin = {1};
  limit.ends = {{2}};
  limit.forced = {4, 2};
  limit.end_now = end_now;
  GrammarGate gate = limit_reasoning(GrammarGate(), limit, Numbers());
  gate.accept(1);
  EXPECT_TRUE(gate.allows(7));
  end_now->raise();
  gate.accept(7);  // was drawn before
  for (const Token token : {4, 2}) {
    EXPECT_FALSE(gate.allows(7));
    EXPECT_TRUE(gate.allows(token));
    gate.accept(token);
  }
  EXPECT_TRUE(gate.allows(7));
}

TEST(ReasoningGate, EndsAtItsBeginWhereThatWasAskedBefore) {
  const auto end_now = std::make_shared<Flag>();
  ReasoningLimit limit = limit_of(1000, {});
  limit.begin = {1};
  limit.ends = {{2}};
  limit.forced = {2};
  limit.end_now = end_now;
  GrammarGate gate = limit_reasoning(GrammarGate(), limit, Numbers());
  end_now->raise();
  EXPECT_TRUE(gate.allows(7)) << "nothing to end yet";
  gate.accept(1);
  EXPECT_FALSE(gate.allows(7));
  EXPECT_TRUE(gate.allows(2));
}

TEST(ReasoningGate, AsksTheGrammarWhereverTheEndIsNotBeingSaid) {
  const LlamaTokenizer tokenizer(test_weights());
  const auto token = [&tokenizer](std::string_view text) {
    return tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::no).front();
  };
  Grammar grammar;
  grammar.text = "root ::= \"a\"+";
  auto compiled = compile_grammar(grammar, test_weights()->vocab());
  ASSERT_TRUE(compiled) << compiled.error().message;
  ReasoningLimit limit = limit_of(1, {token("(")});
  limit.begin = {token("(")};
  limit.ends = {{token(")")}};
  limit.forced = limit.ends.front();
  GrammarGate gate = limit_reasoning(GrammarGate(std::move(*compiled)), limit, tokenizer);
  EXPECT_FALSE(gate.allows(token("b")));
  EXPECT_TRUE(gate.allows(token("a")));
  gate.accept(token("a"));
  EXPECT_FALSE(gate.allows(token("a")));
  EXPECT_TRUE(gate.allows(token(")"))) << "although the grammar does not know it";
  gate.accept(token(")"));
  EXPECT_TRUE(gate.allows(token("a")));
  EXPECT_FALSE(gate.allows(token("b")));
}

}  // namespace
}  // namespace chasqui
