// What libllama's samplers do behind our Sampler: each step with an effect of its own, and grammars.
#include "model/sampling_parts.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "base/limits.h"
#include "model/llama_sampling_kit.h"
#include "model/llama_tokenizer.h"
#include "model/sampler.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

constexpr TokenCount kPartsVocabulary = 8;

// Tokens that `params` may draw from a row, with the chance of each told by the sampler itself.
std::set<Token> support(SamplingParams params, const std::vector<float>& row, const std::vector<Token>& before = {},
                        int draws = 200) {
  params.seed = 7;
  SamplingKit kit(std::make_shared<LlamaTokenizer>(test_weights()), test_weights()->vocab());
  LlamaSamplingParts parts;
  EXPECT_TRUE(needs_chain(params));
  parts.chain = make_chain(params, test_weights()->vocab(), static_cast<TokenCount>(row.size()));
  Sampler sampler(params, static_cast<TokenCount>(row.size()), {}, &parts);
  sampler.accept(before);
  SamplerScratch scratch;
  std::set<Token> out;
  for (int i = 0; i < draws; ++i) {
    std::vector<float> copy = row;
    out.insert(sampler.sample(copy, scratch));
  }
  return out;
}

SamplingParams open_params() {
  SamplingParams params;
  params.temperature = 1;
  params.top_k = 0;
  params.top_p = 1;
  params.min_p = 0;
  return params;
}

const std::vector<float> kFalling = {3, 2.5f, 2, 1.5f, 1, 0.5f, 0, -0.5f};

TEST(SamplingSteps, AreOurOwnSamplerWhereNothingElseIsAskedFor) {
  EXPECT_FALSE(needs_chain(SamplingParams{}));
  SamplingParams mirostat;
  mirostat.mirostat = 2;
  mirostat.typical_p = 0.5f;  // it comes instead of that
  EXPECT_FALSE(needs_chain(mirostat));
  SamplingParams same;
  same.steps.emplace(default_sampling_steps().begin(), default_sampling_steps().end());
  EXPECT_FALSE(needs_chain(same));
}

TEST(SamplingSteps, TopNSigmaKeepsWhatIsNearTheTop) {
  SamplingParams params = open_params();
  params.top_n_sigma = 0.5f;
  EXPECT_FALSE(needs_chain(params)) << "our own sampler does it, where it comes first";
  params.steps = std::vector{SamplingStep::temperature, SamplingStep::top_n_sigma};
  EXPECT_EQ(support(params, kFalling), (std::set<Token>{0, 1}));  // the deviation is 1.15
}

TEST(SamplingSteps, TypicalPKeepsWhatIsNoSurprise) {
  SamplingParams params = open_params();
  params.typical_p = 0.2f;
  const auto kept = support(params, kFalling);
  EXPECT_LT(kept.size(), 4u);
}

TEST(SamplingSteps, XtcLeavesOutTheMostLikely) {
  SamplingParams params = open_params();
  params.xtc_probability = 1;
  params.xtc_threshold = 0.1f;
  EXPECT_FALSE(support(params, kFalling).contains(0));
}

TEST(SamplingSteps, DynamicTemperatureFollowsTheEntropy) {
  SamplingParams params = open_params();
  params.temperature = 0.5f;
  params.dynatemp_range = 0.5f;
  // One token has nearly all: the temperature goes to its lowest, and nothing else is drawn.
  EXPECT_EQ(support(params, {20, 4, 3, 2, 1, 0, 0, 0}), std::set<Token>{0});
}

TEST(SamplingSteps, DryAvoidsGoingOnWithARepetition) {
  SamplingParams params = open_params();
  params.temperature = 0;
  params.dry_multiplier = 10;
  params.dry_sequence_breakers.clear();
  const std::vector<Token> before = {1, 2, 3, 4, 0, 1, 2, 3, 4};
  EXPECT_EQ(support(params, kFalling, {}, 1), std::set<Token>{0});
  EXPECT_EQ(support(params, kFalling, before, 1), std::set<Token>{1});
}

TEST(SamplingSteps, MirostatBoundsTheSurprise) {
  SamplingParams params = open_params();
  params.mirostat = 1;
  params.mirostat_tau = 0.1f;
  EXPECT_LT(support(params, kFalling).size(), kFalling.size());
}

TEST(SamplingSteps, ComeInTheOrderThatWasAskedFor) {
  // Of the two most likely, min-p leaves one at the low temperature, and both at the high one.
  SamplingParams params = open_params();
  params.temperature = 4;
  params.min_p = 0.5f;
  params.steps = std::vector{SamplingStep::min_p, SamplingStep::temperature};
  const auto before = support(params, kFalling);
  params.steps = std::vector{SamplingStep::temperature, SamplingStep::min_p};
  const auto after = support(params, kFalling);
  EXPECT_EQ(before, (std::set<Token>{0, 1}));
  EXPECT_GT(after.size(), before.size());
}

TEST(SamplingSteps, ThatAreLeftOutDoNothing) {
  SamplingParams params = open_params();
  params.top_k = 1;
  params.steps = std::vector{SamplingStep::temperature};
  EXPECT_GT(support(params, kFalling).size(), 4u);
  params.steps.emplace();
  params.temperature = 0;
  EXPECT_GT(support(params, kFalling).size(), 4u) << "none is left";
}

// Infill compares each candidate with each other one, so that it may not see the whole vocabulary.
TEST(SamplingSteps, InfillLooksAtTheMostLikelyOnly) {
  SamplingParams params = open_params();
  params.steps = std::vector{SamplingStep::infill};
  params.chances = 0;
  SamplerChain chain = make_chain(params, test_weights()->vocab(), 1000);
  std::vector<float> row(1000);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = -0.0001f * static_cast<float>(i);
  std::vector<Candidate> left;
  chain.draw(row, left);
  EXPECT_LE(left.size(), kSizeLimit<"infill_candidates">);
}

TEST(SamplingSteps, AdaptiveDrawsNearItsTarget) {
  SamplingParams params = open_params();
  params.steps = std::vector{SamplingStep::adaptive_p};
  params.adaptive_target = 0.05f;
  EXPECT_TRUE(support(params, kFalling).contains(4));
}

TEST(SamplingSteps, ReproduceWithTheirSeed) {
  SamplingParams params = open_params();
  params.typical_p = 0.99f;
  params.seed = 3;
  const auto draw = [&params] {
    LlamaSamplingParts parts;
    parts.chain = make_chain(params, nullptr, kPartsVocabulary);
    Sampler sampler(params, kPartsVocabulary, {}, &parts);
    SamplerScratch scratch;
    std::vector<Token> out;
    for (int i = 0; i < 50; ++i) {
      std::vector<float> row = kFalling;
      out.push_back(sampler.sample(row, scratch));
      sampler.accept(out.back());
    }
    return out;
  };
  EXPECT_EQ(draw(), draw());
}

class GrammarTest : public ::testing::Test {
 protected:
  // What a model says that has no wish but to say the tokens with the lowest ids.
  std::string say(const std::string& text, TokenCount tokens_max = 60) {
    Grammar grammar;
    grammar.text = text;
    SamplingParams params;
    params.temperature = 0;
    params.seed = 1;
    auto parts = kit_.prepare(params, &grammar);
    EXPECT_TRUE(parts) << (parts ? "" : parts.error().message);
    if (!parts) return "";
    Sampler sampler(params, tokenizer_->vocabulary(), tokenizer_->end_of_generation_tokens(), parts->get());
    SamplerScratch scratch;
    std::string out;
    for (TokenCount i = 0; i < tokens_max; ++i) {
      std::vector<float> row(static_cast<std::size_t>(tokenizer_->vocabulary()));
      for (std::size_t t = 0; t < row.size(); ++t) row[t] = -0.01f * static_cast<float>(t);
      const Token token = sampler.sample(row, scratch);
      sampler.accept(token);
      if (tokenizer_->is_end_of_generation(token)) return out;
      out += tokenizer_->piece(token);
    }
    return out + "…";
  }

  std::shared_ptr<LlamaTokenizer> tokenizer_ = std::make_shared<LlamaTokenizer>(test_weights());
  SamplingKit kit_{tokenizer_, test_weights()->vocab()};
};

TEST_F(GrammarTest, DecidesWhatIsSaid) {
  EXPECT_EQ(say(R"(root ::= "Hello, " [x] [0-9] "!")"), "Hello, x0!");
  EXPECT_EQ(say("root ::= \"yes\"\n"), "yes");
}

// A thread's buffers serve one request after the other.
TEST_F(GrammarTest, DrawsFromItsOwnTokensAfterAnotherRequest) {
  SamplerScratch scratch;
  const TokenCount vocabulary = tokenizer_->vocabulary();
  std::vector<float> row(static_cast<std::size_t>(vocabulary));
  for (std::size_t t = 0; t < row.size(); ++t) row[t] = 0.001f * static_cast<float>(t);
  SamplingParams few = open_params();
  few.top_k = 40;
  few.seed = 1;
  std::vector<float> first = row;
  Sampler(few, vocabulary, tokenizer_->end_of_generation_tokens()).sample(first, scratch);

  Grammar grammar;
  grammar.text = "root ::= [0-9]";
  SamplingParams all = open_params();
  all.seed = 1;
  const auto parts = kit_.prepare(all, &grammar);
  ASSERT_TRUE(parts);
  Sampler sampler(all, vocabulary, tokenizer_->end_of_generation_tokens(), parts->get());
  const Token token = sampler.sample(row, scratch);
  EXPECT_EQ(tokenizer_->piece(token).find_first_not_of("0123456789"), std::string::npos);
  for (const Candidate& c : scratch.candidates) {
    ASSERT_TRUE(c.token >= 0 && c.token < vocabulary) << c.token;
    EXPECT_EQ(tokenizer_->piece(c.token).find_first_not_of("0123456789"), std::string::npos) << c.token;
  }
}

TEST_F(GrammarTest, IsCompiledOnce) {
  say(R"(root ::= "a")");
  say(R"(root ::= "a")");
  say(R"(root ::= "b")");
  EXPECT_EQ(kit_.compiled(), 2u);
  EXPECT_EQ(kit_.found(), 1u);
}

TEST_F(GrammarTest, HasItsOwnStateForEachRequest) {
  EXPECT_EQ(say(R"(root ::= "ab")"), "ab");
  EXPECT_EQ(say(R"(root ::= "ab")"), "ab");
}

TEST_F(GrammarTest, ThatIsWrongIsRefused) {
  SamplingParams params;
  std::string deep = "root ::= ";
  for (int i = 0; i < 200; ++i) deep += '(';
  for (const std::string& text : {std::string("root :: \"a\""), std::string("a ::= \"a\""), std::string("root ::= b"),
                                  std::string("root ::= root \"a\" | \"a\""), deep,
                                  std::string("root ::= \"a\"{999999}"), std::string(300'000, ' ')}) {
    Grammar grammar;
    grammar.text = text;
    const auto parts = kit_.prepare(params, &grammar);
    ASSERT_FALSE(parts) << text.substr(0, 50);
    EXPECT_EQ(parts.error().field, "grammar");
  }
}

TEST_F(GrammarTest, ThatIsLazyWaitsForItsTrigger) {
  Grammar grammar;
  grammar.text = R"(root ::= "<" [a] ">")";
  grammar.lazy = true;
  grammar.trigger_patterns = {"[\\s\\S]*?(<)[\\s\\S]*"};
  auto parts = kit_.prepare(SamplingParams{}, &grammar);
  ASSERT_TRUE(parts);
  GrammarGate gate = std::move(static_cast<LlamaSamplingParts&>(**parts).grammar);
  const Token any = tokenizer_->tokenize("z", AddSpecial::no, ParseSpecial::no).back();
  EXPECT_TRUE(gate.allows(any));
}

// Only the end is allowed, and the request has banned that.
TEST_F(GrammarTest, WithNoWayOnEndsTheAnswerAndSaysThatThisIsCertain) {
  Grammar grammar;
  grammar.text = R"(root ::= "a" | [b-z])";
  SamplingParams params = open_params();
  params.seed = 1;
  params.ignore_eos = true;
  params.chances = 3;
  params.chances_after = true;
  const auto parts = kit_.prepare(params, &grammar);
  ASSERT_TRUE(parts);
  const auto ends = tokenizer_->end_of_generation_tokens();
  Sampler sampler(params, tokenizer_->vocabulary(), ends, parts->get());
  SamplerScratch scratch;
  std::vector<TokenChance> chances;
  std::vector<Token> said;
  for (int i = 0; i < 2; ++i) {
    std::vector<float> row(static_cast<std::size_t>(tokenizer_->vocabulary()));
    for (std::size_t t = 0; t < row.size(); ++t) row[t] = 0.001f * static_cast<float>(t);
    said.push_back(sampler.sample(row, scratch, &chances));
    sampler.accept(said.back());
  }
  EXPECT_EQ(said.back(), ends.front());
  ASSERT_EQ(chances.size(), 2u) << "the token, and all that it was drawn from";
  for (const TokenChance& chance : chances) {
    EXPECT_EQ(chance.token, ends.front());
    EXPECT_EQ(chance.logprob, 0.0f);
  }
}

TEST(TokenChances, AreThoseOfTheModelOrOfTheSteps) {
  SamplingParams params;
  params.temperature = 0.5f;
  params.top_k = 2;
  params.top_p = 1;
  params.min_p = 0;
  params.seed = 1;
  params.chances = 3;
  SamplerScratch scratch;
  std::vector<TokenChance> chances;
  std::vector<float> row = {0, 1, 2, 3};
  Sampler before(params, 4, {});
  const Token token = before.sample(row, scratch, &chances);
  ASSERT_EQ(chances.size(), 4u);
  EXPECT_EQ(chances[0].token, token);
  EXPECT_EQ(chances[1].token, 3);
  EXPECT_EQ(chances[2].token, 2);
  EXPECT_NEAR(std::exp(chances[1].logprob), 0.6439, 1e-3);  // softmax over all four, at temperature 1
  params.chances_after = true;
  Sampler after(params, 4, {});
  row = {0, 1, 2, 3};
  after.sample(row, scratch, &chances);
  ASSERT_EQ(chances.size(), 3u);                            // two were left
  EXPECT_NEAR(std::exp(chances[1].logprob), 0.8808, 1e-3);  // over two, at temperature 0.5
  EXPECT_NEAR(std::exp(chances[1].logprob) + std::exp(chances[2].logprob), 1.0, 1e-6);
}

TEST(MinTokens, KeepsTheEndAway) {
  SamplingParams params;
  params.temperature = 0;
  params.min_tokens = 2;
  const Token end[] = {3};
  Sampler sampler(params, 4, end);
  SamplerScratch scratch;
  std::vector<Token> said;
  for (int i = 0; i < 3; ++i) {
    std::vector<float> row = {0, 1, 2, 3};
    said.push_back(sampler.sample(row, scratch));
    sampler.accept(said.back());
  }
  EXPECT_EQ(said, (std::vector<Token>{2, 2, 3}));
}

}  // namespace
}  // namespace chasqui
