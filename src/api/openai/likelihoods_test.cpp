#include "api/openai/likelihoods.h"

#include <array>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace chasqui {
namespace {

namespace json = boost::json;

constexpr Token kBegin = 0, kX = 1, kY = 2, kControl = 3;

// As SentencePiece's: a blank comes before each word, the first one too.
class BlankTokenizer final : public Tokenizer {
 public:
  std::vector<Token> tokenize(std::string_view, AddSpecial, ParseSpecial) const override { return {}; }
  std::string_view piece(Token token) const override { return token == kX ? " x" : token == kY ? " ÿ" : ""; }
  std::string_view special_piece(Token token) const override {
    return token == kBegin ? "<s>" : token == kControl ? "<|end|>" : piece(token);
  }
  TokenCount vocabulary() const override { return 4; }
  std::size_t piece_bytes_max() const override { return 7; }
  bool is_end_of_generation(Token token) const override { return token == kControl; }
  std::span<const Token> end_of_generation_tokens() const override { return kEnd; }

 private:
  static constexpr std::array<Token, 1> kEnd = {kControl};
};

json::array offsets(std::span<const Token> tokens, TextOffset offset) {
  std::vector<TokenChances> chances;
  for (const Token token : tokens) chances.push_back({{token, -1.0F}});
  std::string out;
  JsonWriter json(out);
  write_completion_logprobs(json, BlankTokenizer(), chances, offset);
  return json::parse(out).at("text_offset").as_array();
}

TEST(TextOffset, CountsTheCharactersOfAnAnswer) {
  const std::vector<Token> tokens = {kX, kY, kControl, kX};
  EXPECT_EQ(offsets(tokens, {}), (json::array{0, 2, 4, 4}));
  EXPECT_EQ(offsets(tokens, {10}), (json::array{10, 12, 14, 14}));
}

TEST(TextOffset, IsThatOfTheTextAsItWasWrittenWhereItIsEchoed) {
  const std::vector<Token> tokens = {kBegin, kX, kY, kControl, kX, kY};
  EXPECT_EQ(offsets(tokens, {0, "x ÿ<|end|>", 4}), (json::array{0, 0, 1, 3, 10, 12}));
  EXPECT_EQ(offsets(tokens, {0, "<s> x ÿ<|end|>", 4}), (json::array{0, 3, 5, 7, 14, 16})) << "echoed as tokens";
}

TEST(TextOffset, OfTheAnswerBeginsBehindAnEchoThatItsTokensDoNotSpell) {
  const std::vector<Token> tokens = {kX, kY, kX};
  EXPECT_EQ(offsets(tokens, {0, "X Y", 2}), (json::array{0, 0, 3}));
}

}  // namespace
}  // namespace chasqui
