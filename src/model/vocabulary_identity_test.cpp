#include "model/vocabulary_identity.h"

#include <chasqui_demo_model.h>
#include <gtest/gtest.h>

#include "model/loaded_model.h"
#include "model/sim_tokenizer.h"

namespace chasqui {
namespace {

TEST(VocabularyIdentity, IsTheSameForTheSameTokensAndNotForOthers) {
  const SimTokenizer one;
  const SimTokenizer two;
  EXPECT_EQ(identify_vocabulary(one), identify_vocabulary(two));
  const auto demo = load_llama(demo_model(), "demo");
  ASSERT_TRUE(demo);
  EXPECT_NE(identify_vocabulary(one), identify_vocabulary(*demo->tokenizer));
  EXPECT_EQ(identify_vocabulary(*demo->tokenizer), identify_vocabulary(*load_llama(demo_model(), "again")->tokenizer));
}

}  // namespace
}  // namespace chasqui
