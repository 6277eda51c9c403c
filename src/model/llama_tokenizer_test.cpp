#include "model/llama_tokenizer.h"

#include <thread>

#include <gtest/gtest.h>

#include "model/test_weights.h"
#include "model/text_assembler.h"

namespace chasqui {
namespace {

// Byte-level vocabularies give back exactly what they were given; SentencePiece puts a space in front.
std::string round_trip(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<Token> tokens = tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::no);
  std::string out;
  TextAssembler assembler(tokenizer, {}, false);
  for (Token token : tokens) assembler.push(token, out);
  assembler.flush(out);
  if (test_weights()->info().vocabulary_type == "SPM" && out.starts_with(' ')) out.erase(0, 1);
  return out;
}

TEST(LlamaTokenizer, TextSurvives) {
  const LlamaTokenizer tokenizer(test_weights());
  for (std::string_view text : {"Hello, world", "  two  spaces\n\n\ttab", "naïve café – “quoted”", "日本語 и кириллица",
                                "🙂🙃 👩‍👩‍👧", "{\"a\": [1, 2.5e-3]}", "x", "<|im_end|> as text"}) {
    EXPECT_EQ(round_trip(tokenizer, text), text);
  }
  EXPECT_TRUE(tokenizer.tokenize("", AddSpecial::no, ParseSpecial::no).empty());
}

TEST(LlamaTokenizer, ControlTokensAreTextOnlyOnRequest) {
  const LlamaTokenizer tokenizer(test_weights());
  const Token end = test_weights()->info().eos;
  EXPECT_TRUE(tokenizer.is_end_of_generation(end));
  EXPECT_EQ(tokenizer.piece(end), "");
  EXPECT_EQ(tokenizer.special_piece(end), test_weights()->info().eos_text);

  const std::string text = test_weights()->info().eos_text;
  EXPECT_EQ(tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::yes), std::vector<Token>{end});
  const std::vector<Token> plain = tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::no);
  EXPECT_GT(plain.size(), 1u);
  EXPECT_NE(detokenize(tokenizer, plain).find(text), std::string::npos);
}

TEST(LlamaTokenizer, ATextThatIsTokenizedInPiecesGivesTheTokensOfItsParts) {
  const LlamaTokenizer tokenizer(test_weights());
  const std::string end = test_weights()->info().eos_text;
  const std::string part = end + "Some words,\n 12 more " + end + "end ";
  const std::vector<Token> once = tokenizer.tokenize(part, AddSpecial::no, ParseSpecial::yes);
  constexpr std::size_t kTimes = 2000;
  std::string text;
  std::vector<Token> expected;
  for (std::size_t i = 0; i < kTimes; ++i) {
    text += part;
    expected.insert(expected.end(), once.begin(), once.end());
  }
  EXPECT_EQ(tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::yes), expected);
  const std::vector<Token> whole = tokenizer.tokenize(part, AddSpecial::yes, ParseSpecial::yes);
  const std::vector<Token> pieces = tokenizer.tokenize(text, AddSpecial::yes, ParseSpecial::yes);
  EXPECT_EQ(pieces.size() - expected.size(), whole.size() - once.size());
  EXPECT_EQ(pieces.front(), whole.front());
  EXPECT_EQ(pieces.back(), whole.back());
}

TEST(LlamaTokenizer, NoPieceIsLongerThanItSays) {
  const LlamaTokenizer tokenizer(test_weights());
  std::size_t longest = 0;
  for (Token token = 0; token < tokenizer.vocabulary(); ++token) {
    longest = std::max(longest, tokenizer.special_piece(token).size());
  }
  EXPECT_EQ(tokenizer.piece_bytes_max(), longest);
}

TEST(LlamaTokenizer, KnowsItsEndTokens) {
  const LlamaTokenizer tokenizer(test_weights());
  EXPECT_EQ(tokenizer.vocabulary(), test_weights()->info().vocabulary);
  std::size_t ends = 0;
  for (Token token = 0; token < tokenizer.vocabulary(); ++token) ends += tokenizer.is_end_of_generation(token) ? 1 : 0;
  EXPECT_EQ(ends, tokenizer.end_of_generation_tokens().size());
  EXPECT_GE(ends, 1u);
}

TEST(LlamaTokenizer, BeginTokenIsAddedAsTheModelSays) {
  const LlamaTokenizer tokenizer(test_weights());
  const std::vector<Token> with = tokenizer.tokenize("Hello", AddSpecial::yes, ParseSpecial::no);
  const std::vector<Token> without = tokenizer.tokenize("Hello", AddSpecial::no, ParseSpecial::no);
  EXPECT_EQ(with.size() > without.size(), test_weights()->info().adds_bos);
}

TEST(LlamaTokenizer, BytesThatAreNoTextAreTakenToo) {
  const LlamaTokenizer tokenizer(test_weights());
  EXPECT_FALSE(tokenizer.tokenize("a\xFF\xC3(b", AddSpecial::no, ParseSpecial::no).empty());
  EXPECT_FALSE(tokenizer.tokenize(std::string_view("a\0b", 3), AddSpecial::no, ParseSpecial::no).empty());
}

TEST(LlamaTokenizer, ManyThreadsMayUseIt) {
  const LlamaTokenizer tokenizer(test_weights());
  const std::string text = "The same text, many times over. ";
  const std::vector<Token> expected = tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::no);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (tokenizer.tokenize(text, AddSpecial::no, ParseSpecial::no) != expected) ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace chasqui
