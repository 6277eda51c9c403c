// What a grammar forces is what the tokenizer makes of the whole text, whatever follows, and nothing but that may come.
#include "model/forced_tokens.h"

#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "model/automaton_gate.h"
#include "model/grammar/grammar_matcher.h"
#include "model/grammar_shape.h"
#include "model/llama_tokenizer.h"
#include "model/random_grammar.h"
#include "model/sim_tokenizer.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

// A place in a grammar, at first its beginning.
struct Walk {
  GrammarMatcher matcher;
  GrammarMasks masks;
  Token last = 0;
  std::string said;
};

Walk begin(const std::string& text, const Tokenizer& tokenizer, std::shared_ptr<const TokenTrie> tokens) {
  Grammar grammar;
  grammar.text = text;
  auto program = compile_program(grammar, tokenizer, std::move(tokens));
  CHECK(program, program ? "" : program.error().message);
  return {GrammarMatcher(*program), GrammarMasks(*program), 0, {}};
}

bool accept(Walk& walk, Token token, const Tokenizer& tokenizer) {
  walk.last = token;
  walk.said += tokenizer.special_piece(token);
  return walk.matcher.accept(token, walk.masks);
}

std::vector<Token> forced(Walk& walk, const Tokenizer& tokenizer) {
  const auto found = forced_tokens(walk.masks, walk.matcher.state(walk.masks), walk.last, tokenizer);
  return {found.begin(), found.end()};
}

std::string forced_text_of(Walk& walk) { return walk.masks.forced_text(walk.matcher.state(walk.masks)); }

class ForcedTokensTest : public ::testing::Test {
 protected:
  Walk begin(const std::string& text) { return chasqui::begin(text, tokenizer_, tokens_); }
  bool accept(Walk& walk, Token token) { return chasqui::accept(walk, token, tokenizer_); }
  std::vector<Token> forced(Walk& walk) { return chasqui::forced(walk, tokenizer_); }
  std::vector<Token> tokens_of(std::string_view text) const {
    return tokenizer_.tokenize(text, AddSpecial::no, ParseSpecial::no);
  }

  LlamaTokenizer tokenizer_{test_weights()};
  std::shared_ptr<const TokenTrie> tokens_ = make_token_trie(tokenizer_);
};

// Walks through texts in the tokens that the tokenizer makes of them; how many of all tokens need not be sampled.
double walk_texts(const Tokenizer& tokenizer, const std::shared_ptr<const TokenTrie>& tokens) {
  const std::string grammar =
      R"(root ::= [ ]? "{\"customer_name\": \"" name "\", \"delivery_date\": " [0-9]+ ", \"ok\": " ok "}"
name ::= [^"\\\x00-\x1f]*
ok ::= "true" | "false")";
  std::size_t all = 0;
  std::size_t certain = 0;
  for (const std::string name : {"Bob", "anna maria", "", " x", "Ünal", ": 7", "1999", "...", "{}", "'s"}) {
    for (const std::string end : {"7, \"ok\": true}", "20240131, \"ok\": false}", "1, \"ok\": true}"}) {
      const std::vector<Token> whole = tokenizer.tokenize(
          "{\"customer_name\": \"" + name + "\", \"delivery_date\": " + end, AddSpecial::no, ParseSpecial::no);
      Walk walk = begin(grammar, tokenizer, tokens);
      all += whole.size();
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_TRUE(accept(walk, whole[i], tokenizer)) << walk.said;
        const std::vector<Token> next = forced(walk, tokenizer);
        for (std::size_t j = 0; j < next.size() && !testing::Test::HasFailure(); ++j) {
          const bool same = i + 1 + j < whole.size() && next[j] == whole[i + 1 + j];
          EXPECT_TRUE(same) << tokenizer.piece(next[j]) << " behind " << walk.said << " of " << name << " and " << end;
        }
        if (next.empty()) continue;
        ++certain;  // the others are found again behind it
        EXPECT_TRUE(accept(walk, whole[++i], tokenizer));
      }
      if (testing::Test::HasFailure()) return 0;
    }
  }
  return static_cast<double>(certain) / static_cast<double>(all);
}

TEST_F(ForcedTokensTest, AreThoseOfTheWholeTextWhateverFollows) { EXPECT_GT(walk_texts(tokenizer_, tokens_), 0.2); }

// Of the models that libllama is tested with.
TEST_F(ForcedTokensTest, AreThoseOfTheWholeTextInEveryVocabulary) {
  WeightsOptions words_only;
  words_only.vocabulary_only = true;
  std::error_code absent;
  std::size_t vocabularies = 0;
  for (const auto& file : std::filesystem::directory_iterator(CHASQUI_TEMPLATES "/..", absent)) {
    if (!file.path().filename().string().starts_with("ggml-vocab-") || file.path().extension() != ".gguf") continue;
    SCOPED_TRACE(file.path().filename());
    auto weights = LlamaWeights::from_file(file.path(), words_only);
    ASSERT_TRUE(weights);
    const std::string type = (*weights)->info().vocabulary_type;
    if (type != "BPE" && type != "SPM") continue;
    const LlamaTokenizer tokenizer(*weights);
    EXPECT_GT(walk_texts(tokenizer, make_token_trie(tokenizer)), 0.1);
    if (HasFailure()) return;
    ++vocabularies;
  }
  if (vocabularies == 0) GTEST_SKIP() << "no vocabularies beside " << CHASQUI_TEMPLATES;
  EXPECT_GT(vocabularies, 5u);
}

TEST_F(ForcedTokensTest, MayComeAndNothingElseMay) {
  std::mt19937 random(7);
  RandomGrammar grammars(random);
  std::size_t found = 0;
  for (unsigned i = 0; i < 400; ++i) {
    random.seed(100 + i);
    const std::string text = grammars.text();
    if (!check_grammar_shape(text)) continue;
    Walk walk = begin(text);
    for (int step = 0; step < 8; ++step) {
      const TokenMask* mask = &walk.matcher.mask(walk.masks);
      while (!mask->whole) mask = &walk.matcher.mask(walk.masks);
      std::vector<Token> ways;
      for (Token token = 0; token < tokenizer_.vocabulary(); ++token) {
        if (mask->has(token) && !tokenizer_.is_end_of_generation(token)) ways.push_back(token);
      }
      if (ways.empty()) break;
      ASSERT_TRUE(accept(walk, ways[random() % ways.size()]));
      const std::string certain = forced_text_of(walk);
      std::string spelled;
      for (const Token token : forced(walk)) {
        EXPECT_FALSE(tokenizer_.is_end_of_generation(token));
        ASSERT_TRUE(accept(walk, token)) << text << "after " << walk.said;
        spelled += tokenizer_.special_piece(token);
        ++found;
      }
      EXPECT_TRUE(certain.starts_with(spelled)) << text << "after " << walk.said;
    }
  }
  EXPECT_GT(found, 50u);
}

TEST_F(ForcedTokensTest, AreNoneWhereTheTextMayEndOrGoOnOtherwise) {
  for (const std::string grammar :
       {R"(root ::= "a" "bcdefg"?)", R"(root ::= "a" ("bcd" | "efg"))", R"(root ::= "a" ("bcdefg" | <|im_end|>))"}) {
    Walk walk = begin(grammar);
    ASSERT_TRUE(accept(walk, tokens_of("a").front()));
    EXPECT_EQ(forced_text_of(walk), "") << grammar;
    EXPECT_TRUE(forced(walk).empty()) << grammar;
  }
}

// That it is one by itself shows in no other place.
TEST_F(ForcedTokensTest, AreNoneBehindATokenThatIsNoneByItself) {
  const std::vector<Token> word = tokens_of(" the");
  ASSERT_EQ(word.size(), 1u) << "of the demo model";
  Walk walk = begin(R"(root ::= " the" [ ] [a-z]+)");
  ASSERT_TRUE(accept(walk, tokens_of(" t").front()));
  EXPECT_FALSE(forced_text_of(walk).empty());
  EXPECT_TRUE(forced(walk).empty());
}

// Formats of tool calls have such markers in the middle; spelled, they are no markers to the model.
TEST_F(ForcedTokensTest, DoNotSpellAControlToken) {
  const std::vector<Token> marker = tokenizer_.tokenize("<|im_start|>", AddSpecial::no, ParseSpecial::yes);
  ASSERT_EQ(marker.size(), 1u);
  const std::string before = " the runner";
  Walk walk = begin(R"(root ::= "a the runner<|im_start|> goes on over the mountains")");
  ASSERT_TRUE(accept(walk, tokens_of("a").front()));
  std::string spelled;
  for (const Token token : forced(walk)) {
    ASSERT_TRUE(accept(walk, token));
    spelled += tokenizer_.special_piece(token);
  }
  ASSERT_TRUE(before.starts_with(spelled)) << spelled;
  for (const Token token : tokens_of(before.substr(spelled.size()))) ASSERT_TRUE(accept(walk, token));
  EXPECT_FALSE(forced_text_of(walk).empty());
  EXPECT_TRUE(forced(walk).empty());
  ASSERT_TRUE(accept(walk, marker.front()));
  EXPECT_FALSE(forced(walk).empty()) << "behind it text goes on";
}

TEST_F(ForcedTokensTest, LeaveALastTokenThatMayBeALongerOne) {
  Walk walk = begin(R"g(root ::= "x = (" [a-z]+ ")")g");
  ASSERT_TRUE(accept(walk, tokens_of("x").front()));
  ASSERT_EQ(forced_text_of(walk), " = (");
  std::string said = "x";
  for (const Token token : forced(walk)) said += tokenizer_.piece(token);
  const Token last = tokens_of("x = (").back();
  EXPECT_TRUE(std::string("x = (").starts_with(said));
  bool longer = false;  // one that begins as the last does, and goes on as the grammar may
  for (Token token = 0; token < tokenizer_.vocabulary(); ++token) {
    const std::string_view piece = tokenizer_.piece(token);
    if (token == last || !piece.starts_with(tokenizer_.piece(last))) continue;
    longer = longer ||
             piece.substr(tokenizer_.piece(last).size()).find_first_not_of("abcdefghijklmnopqrstuvwxyz") == piece.npos;
  }
  EXPECT_EQ(said == "x = (", !longer);
}

TEST_F(ForcedTokensTest, BeginInTheMiddleOfACharacterOnlyWhereItEnds) {
  const SimTokenizer bytes;  // each byte of it is a token
  Walk walk = chasqui::begin(R"(root ::= "é" "èab" [xy])", bytes, make_token_trie(bytes));
  walk.last = 0xC3;
  ASSERT_TRUE(walk.matcher.accept(0xC3, walk.masks));
  EXPECT_EQ(forced_text_of(walk),
            "\xA9\xC3\xA8"
            "ab");
  EXPECT_TRUE(chasqui::forced(walk, bytes).empty());
  walk.last = 0xA9;
  ASSERT_TRUE(walk.matcher.accept(0xA9, walk.masks));
  EXPECT_TRUE(chasqui::forced(walk, bytes).empty()) << "a part of a character tells no tokenizer what is before it";
}

TEST_F(ForcedTokensTest, AreKeptForTheNextAnswer) {
  Walk walk = begin(R"(root ::= "the name of the place: " [a-z]+)");
  ASSERT_TRUE(accept(walk, tokens_of("the name of the place: a").front()));
  const std::size_t before = walk.masks.bytes();
  const std::vector<Token> first = forced(walk);
  EXPECT_FALSE(first.empty());
  const std::size_t after = walk.masks.bytes();
  EXPECT_GT(after, before);
  EXPECT_EQ(forced(walk), first);
  EXPECT_EQ(walk.masks.bytes(), after);
  walk.masks.forget();
  EXPECT_EQ(forced(walk), first);
}

}  // namespace
}  // namespace chasqui
