#include "model/vocabulary_identity.h"

#include <gtest/gtest.h>

#include "model/llama_tokenizer.h"
#include "model/sim_tokenizer.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

TEST(VocabularyIdentity, IsTheSameForTheSameTokensAndNotForOthers) {
  const SimTokenizer one;
  const SimTokenizer two;
  EXPECT_EQ(identify_vocabulary(one), identify_vocabulary(two));
  const LlamaTokenizer demo(test_weights());
  const LlamaTokenizer again(test_weights());
  EXPECT_EQ(identify_vocabulary(demo), identify_vocabulary(again));
  EXPECT_NE(identify_vocabulary(one), identify_vocabulary(demo));
}

}  // namespace
}  // namespace chasqui
