// Our engine for grammars says what libllama's says: on random grammars and on those of schemas, along texts that both
// allow. Only tokens of whole characters are compared: libllama takes what is not UTF-8 for characters.
#include "model/automaton_gate.h"

#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/limits.h"
#include "model/grammar/utf8_ranges.h"
#include "model/grammar_shape.h"
#include "model/llama_sampling_kit.h"
#include "model/llama_tokenizer.h"
#include "model/random_grammar.h"
#include "model/sampler.h"
#include "model/schema_grammar.h"
#include "model/test_weights.h"
#include "model/work_budget.h"

namespace chasqui {
namespace {

bool is_whole(std::string_view text) {
  while (!text.empty()) {
    std::uint32_t code = 0;
    const std::size_t bytes = read_utf8(text, code);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

class GrammarEnginesTest : public ::testing::Test {
 protected:
  GrammarEnginesTest() {
    for (Token token = 0; token < tokenizer_.vocabulary(); ++token) {
      if (is_whole(tokenizer_.special_piece(token))) whole_.push_back(token);
    }
  }

  // Tokens to compare: some of all, and some of those that our mask has.
  std::vector<Candidate> drawn(const TokenMask& mask) {
    std::set<Token> out;
    for (int i = 0; i < 150; ++i) out.insert(whole_[random_() % whole_.size()]);
    const std::size_t begin = random_() % whole_.size();
    for (std::size_t i = 0; i < whole_.size() && out.size() < 250; ++i) {
      const Token token = whole_[(begin + i) % whole_.size()];
      if (mask.has(token)) out.insert(token);
    }
    for (const Token token : tokenizer_.end_of_generation_tokens()) out.insert(token);
    std::vector<Candidate> candidates;
    for (const Token token : out) candidates.push_back({token, 0, 0});
    return candidates;
  }

  static TokenMask whole_mask(const GrammarGate& gate) {
    for (;;) {
      std::uint64_t work = GrammarMasks::kStepWork;
      const TokenMask* const found = gate.mask(work);
      if (found->whole) return *found;  // else it was put off
    }
  }

  // False: libllama's engine does not come to an end in time.
  bool compare(const std::string& text, int steps) {
    said_.clear();
    Grammar grammar;
    grammar.text = text;
    auto judge = compile_grammar(grammar, test_weights()->vocab());
    EXPECT_TRUE(judge) << text;
    auto program = compile_program(grammar, tokenizer_, tokens_);
    EXPECT_TRUE(program) << text << program.error().message;
    if (!judge || !program) return true;
    auto own = make_automaton_gate(grammar, *program);
    EXPECT_TRUE(own);
    GrammarGate theirs(std::move(*judge));
    GrammarGate ours(std::move(*own));
    for (int i = 0; i < steps; ++i) {
      const TokenMask mask = whole_mask(ours);
      const std::vector<Candidate> asked = drawn(mask);
      std::vector<Candidate> allowed = asked;
      const WorkBudget budget(seconds(2));
      theirs.filter(allowed);
      if (budget.is_used_up()) return false;
      std::set<Token> expected;
      for (const Candidate& candidate : allowed) expected.insert(candidate.token);
      std::vector<Token> ways;
      for (const Candidate& candidate : asked) {
        const bool has = mask.has(candidate.token);
        EXPECT_EQ(has, expected.contains(candidate.token))
            << text << "after " << said_ << ": " << tokenizer_.special_piece(candidate.token);
        EXPECT_EQ(ours.allows(candidate.token), has) << text;
        if (has && !tokenizer_.is_end_of_generation(candidate.token)) ways.push_back(candidate.token);
      }
      if (HasFailure() || ways.empty()) break;
      const Token token = ways[random_() % ways.size()];
      said_ += tokenizer_.special_piece(token);
      ours.accept(token);
      theirs.accept(token);
      if (!theirs.present()) return false;
    }
    return true;
  }

  LlamaTokenizer tokenizer_{test_weights()};
  std::shared_ptr<const TokenTrie> tokens_ = make_token_trie(tokenizer_);
  std::vector<Token> whole_;
  // Others with each of --gtest_shuffle --gtest_repeat=34, which makes them 10,000.
  const unsigned seed_ = 11u + 300u * static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::mt19937 random_{seed_};
  std::string said_;
};

TEST_F(GrammarEnginesTest, AgreeOnRandomGrammars) {
  RandomGrammar grammars(random_);
  int compared = 0;
  for (unsigned i = 0; i < 300 && !HasFailure(); ++i) {
    random_.seed(seed_ + i);  // whatever was cut off before
    const std::string text = grammars.text();
    if (!check_grammar_shape(text)) continue;
    if (compare(text, 6)) ++compared;
  }
  EXPECT_GT(compared, 250);
}

TEST_F(GrammarEnginesTest, AgreeOnSchemas) {
  for (const char* schema : {
           R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]})",
           R"({"type":"array","items":{"enum":["x","yes",3,null]},"minItems":1,"maxItems":4})",
           R"({"type":"string","minLength":2,"maxLength":9})",
           R"({"type":"integer","minimum":-12,"maximum":345})",
           R"({"type":"string","format":"date-time"})",
           R"({"anyOf":[{"type":"number"},{"type":"object","properties":{"k":{"type":"boolean"}}}]})",
           R"({"type":"object","additionalProperties":{"type":"string"}})",
           "{}",
       }) {
    SCOPED_TRACE(schema);
    const auto text = grammar_of_schema(schema);
    ASSERT_TRUE(text);
    EXPECT_TRUE(compare(*text, 25));
  }
}

class OwnEngineTest : public ::testing::Test {
 protected:
  GrammarGate gate_of(const Grammar& grammar, GrammarEngine engine = GrammarEngine::chasqui) {
    SamplingKit kit(tokenizer_, test_weights()->vocab(), engine);
    auto parts = kit.prepare(SamplingParams{}, &grammar);
    CHECK(parts);
    return std::move(static_cast<LlamaSamplingParts&>(**parts).grammar);
  }
  Token token_of(std::string_view text) const {
    return tokenizer_->tokenize(text, AddSpecial::no, ParseSpecial::no).back();
  }

  std::shared_ptr<LlamaTokenizer> tokenizer_ = std::make_shared<LlamaTokenizer>(test_weights());
};

TEST_F(OwnEngineTest, WaitsForATriggerAndStartsWithIt) {
  Grammar grammar;
  grammar.text = R"(root ::= "<" [a] ">")";
  grammar.lazy = true;
  grammar.trigger_patterns = {"[\\s\\S]*?(<)[\\s\\S]*"};
  GrammarGate gate = gate_of(grammar);
  ASSERT_TRUE(gate.has_masks());
  std::uint64_t work = 1000;
  EXPECT_EQ(gate.mask(work), nullptr);
  EXPECT_TRUE(gate.allows(token_of("z")));
  gate.accept(token_of("z"));
  gate.accept(token_of("<"));
  EXPECT_FALSE(gate.allows(token_of("z")));
  EXPECT_TRUE(gate.allows(token_of("a")));
}

TEST_F(OwnEngineTest, LetsGoOfWhatDoesNotFitAtItsTrigger) {
  Grammar grammar;
  grammar.text = R"(root ::= "[" [a])";
  grammar.lazy = true;
  grammar.trigger_patterns = {"[\\s\\S]*?(<)[\\s\\S]*"};
  GrammarGate gate = gate_of(grammar);
  gate.accept(token_of("<"));
  EXPECT_FALSE(gate.present());
}

TEST_F(OwnEngineTest, GoesOnFromWhatThePromptEndsWith) {
  Grammar grammar;
  grammar.text = R"(root ::= "ab" [c])";
  grammar.begun = {token_of("a"), token_of("b")};
  GrammarGate gate = gate_of(grammar);
  EXPECT_TRUE(gate.allows(token_of("c")));
  EXPECT_FALSE(gate.allows(token_of("a")));
}

TEST_F(OwnEngineTest, CompilesATextOnceWhereverItBegins) {
  SamplingKit kit(tokenizer_, test_weights()->vocab());
  Grammar grammar;
  grammar.text = R"(root ::= "ab" [c])";
  ASSERT_TRUE(kit.prepare(SamplingParams{}, &grammar));
  grammar.begun = {token_of("z")};
  const auto refused = kit.prepare(SamplingParams{}, &grammar);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "grammar");
  EXPECT_GT(kit.vocabulary_bytes(), 0u);
}

// With the same logits, parameters and seed both engines choose the same tokens.
TEST_F(OwnEngineTest, ChoosesAsTheOtherEngine) {
  for (const float temperature : {0.0f, 0.8f, 3.0f}) {
    for (const std::string text :
         {R"(root ::= "{" ("yes" | "no" | [0-9]{1,6}) "}")", R"(root ::= [a-zA-Z ,.]{4,30} "!")"}) {
      std::vector<std::vector<Token>> said;
      for (const GrammarEngine engine : {GrammarEngine::chasqui, GrammarEngine::llama}) {
        SamplingKit kit(tokenizer_, test_weights()->vocab(), engine);
        Grammar grammar;
        grammar.text = text;
        SamplingParams params;
        params.temperature = temperature;
        params.seed = 5;
        params.min_p = 0.05f;
        params.top_k = 0;  // which would bring the candidates into an order that depends on the others
        params.top_p = 1;
        auto parts = kit.prepare(params, &grammar);
        ASSERT_TRUE(parts);
        Sampler sampler(params, tokenizer_->vocabulary(), tokenizer_->end_of_generation_tokens(), parts->get());
        SamplerScratch scratch;
        std::mt19937 random(3);
        std::normal_distribution<float> noise(0, 3);
        said.emplace_back();
        for (int i = 0; i < 30; ++i) {
          std::vector<float> row(static_cast<std::size_t>(tokenizer_->vocabulary()));
          for (float& logit : row) logit = noise(random);
          said.back().push_back(sampler.sample(row, scratch));
          sampler.accept(said.back().back());
          if (tokenizer_->is_end_of_generation(said.back().back())) break;
        }
      }
      EXPECT_EQ(said[0], said[1]) << text << " at " << temperature;
    }
  }
}

// So much work for masks after each step, where the caller can wait; and for how many steps tokens were put off.
struct Waiting {
  std::optional<std::uint64_t> work;
  std::vector<Token> said;
  int steps = 0;
};

class OwnEngineWaitsTest : public OwnEngineTest {
 protected:
  void answer(const std::string& text, float temperature, Waiting& how) {
    SamplingKit kit(tokenizer_, test_weights()->vocab());
    Grammar grammar;
    grammar.text = text;
    SamplingParams params;
    params.temperature = temperature;
    params.seed = 5;
    auto parts = kit.prepare(params, &grammar);
    ASSERT_TRUE(parts);
    Sampler sampler(params, tokenizer_->vocabulary(), tokenizer_->end_of_generation_tokens(), parts->get());
    SamplerScratch scratch;
    scratch.can_wait = how.work.has_value();
    scratch.mask_least = how.work.value_or(0);
    std::mt19937 random(3);
    std::normal_distribution<float> noise(0, 3);
    for (int i = 0; i < 30; ++i) {
      std::vector<float> row(static_cast<std::size_t>(tokenizer_->vocabulary()));
      for (float& logit : row) logit = noise(random);
      Token token = Sampler::kPutOff;
      for (int steps = 0; token == Sampler::kPutOff; ++steps) {
        std::vector<float> same = row;
        token = sampler.sample(same, scratch);
        how.steps += token == Sampler::kPutOff ? 1 : 0;
        ASSERT_LE(steps, 64) << "for ever";
      }
      how.said.push_back(token);
      sampler.accept(token);
      if (tokenizer_->is_end_of_generation(token)) break;
    }
  }
  const std::string text_ =
      R"(root ::= ("{" | "[" | [a-z]+ "-") ("yes" | "no" | [0-9a-f]{1,6} | [A-Z] [^"]{2,9} "!")+ "}")";
};

TEST_F(OwnEngineWaitsTest, PutOffTokensAreThoseThatWouldHaveComeAtOnce) {
  for (const float temperature : {0.0f, 0.8f, 5.0f}) {
    Waiting at_once;
    answer(text_, temperature, at_once);
    Waiting later;
    later.work = 400;
    answer(text_, temperature, later);
    EXPECT_EQ(later.said, at_once.said) << temperature;
    EXPECT_GT(later.steps, 0);
    EXPECT_EQ(at_once.steps, 0);
  }
}

TEST_F(OwnEngineWaitsTest, NoTokenWaitsForEver) {
  Waiting briefly;
  briefly.work = 1;
  answer(text_, 1, briefly);
  EXPECT_GE(briefly.steps, static_cast<int>(kCountLimit<"grammar_mask_steps">));
  Grammar grammar;
  grammar.text = text_;
  GrammarGate gate = gate_of(grammar);
  for (const Token token : briefly.said) {
    EXPECT_TRUE(gate.allows(token));
    gate.accept(token);
  }
}

}  // namespace
}  // namespace chasqui
