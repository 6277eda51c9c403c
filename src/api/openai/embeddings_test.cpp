// How vectors, and the outputs of ranking heads, are turned into answers. No model computes anything here.
#include "api/openai/embeddings.h"

#include <gtest/gtest.h>

#include "api/llama_server/rerank.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

TEST(Normalize, MakesTheNormOneThatWasAskedFor) {
  std::vector<float> values = {3, -4};
  normalize(values, 2);
  EXPECT_FLOAT_EQ(values[0], 0.6f);
  EXPECT_FLOAT_EQ(values[1], -0.8f);
  values = {3, -4};
  normalize(values, 1);
  EXPECT_FLOAT_EQ(values[1], -4.0f / 7);
  values = {3, -4};
  normalize(values, 0);
  EXPECT_FLOAT_EQ(values[1], -32760);
  values = {3, -4};
  normalize(values, -1);
  EXPECT_EQ(values, (std::vector<float>{3, -4}));
}

TEST(Normalize, LeavesZeroAsItIs) {
  std::vector<float> values = {0, 0};
  for (const std::int64_t norm : {0, 1, 2}) normalize(values, norm);
  EXPECT_EQ(values, (std::vector<float>{0, 0}));
}

TEST(Base64, IsThatOfTheBytesWithItsPadding) {
  EXPECT_EQ(base64_of({}), "");
  EXPECT_EQ(base64_of(std::vector<float>{1}), "AACAPw==");
  EXPECT_EQ(base64_of(std::vector<float>{1, -2}), "AACAPwAAAMA=");
  EXPECT_EQ(base64_of(std::vector<float>{1, -2, 0.5f}), "AACAPwAAAMAAAAA/");
}

TEST(RankInput, IsTheModelsTemplateWhereItHasOne) {
  const SimTokenizer tokenizer;
  ModelInfo info;
  info.rank_template = "Q {query} D {document}";
  EXPECT_EQ(detokenize(tokenizer, rank_input(info, tokenizer, "{document}?", "x")), "Q {document}? D x");
}

TEST(RankInput, HasSpecialTokensBetweenTheTwoElsewhere) {
  const SimTokenizer tokenizer;
  ModelInfo info;
  info.bos = 1;
  info.eos = 2;
  info.separator = 3;
  info.adds_bos = true;
  info.adds_eos = true;
  const auto a = tokenizer.tokenize("a", AddSpecial::no, ParseSpecial::no);
  std::vector<Token> expected = {1};
  expected.insert(expected.end(), a.begin(), a.end());
  expected.insert(expected.end(), {2, 3});
  expected.insert(expected.end(), a.begin(), a.end());
  expected.push_back(2);
  EXPECT_EQ(rank_input(info, tokenizer, "a", "a"), expected);
}

}  // namespace
}  // namespace chasqui
