// Keys and values in all formats: what comes out of such a cache, of its snapshots, and of slots that change places.
#include <string>

#include <gtest/gtest.h>

#include "model/llama_model.h"
#include "model/llama_tokenizer.h"
#include "model/test_rows.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

Result<std::unique_ptr<LlamaModel>> with_types(KvType keys, KvType values,
                                               FlashAttention flash = FlashAttention::automatic) {
  ModelConfig config{.slots = 3, .cells = 3 * 512, .threads = 1};
  config.flash_attention = flash;
  config.kv_keys = keys;
  config.kv_values = values;
  return LlamaModel::make(test_weights(), config);
}

std::unique_ptr<LlamaModel> make_typed(KvType type) {
  auto model = with_types(type, type);
  CHECK(model, model ? "" : model.error().message);
  return std::move(*model);
}

std::vector<Token> typed_prompt() {
  return LlamaTokenizer(test_weights())
      .tokenize(
          "The runner waits at the relay station until the message comes, then carries it to the next one. "
          "There another runner takes it, and the first one goes home.",
          AddSpecial::yes, ParseSpecial::no);
}

class LlamaKvTypes : public testing::TestWithParam<KvType> {};

TEST_P(LlamaKvTypes, AnswersAreNearThoseOfFloats) {
  const std::vector<float> exact = run(*make_typed(KvType::f32), 0, 0, typed_prompt());
  const std::vector<float> got = run(*make_typed(GetParam()), 0, 0, typed_prompt());
  EXPECT_LT(difference(exact, got), bytes_per_value(GetParam()) < 1 ? 0.4 : 0.1);
}

TEST_P(LlamaKvTypes, ASnapshotGoesOnInAnotherContextWithTheSameTokens) {
  const std::vector<Token> tokens = typed_prompt();
  const auto length = static_cast<TokenCount>(tokens.size());
  auto one = make_typed(GetParam());
  const std::vector<float> logits = run(*one, 0, 0, tokens);
  const KvSnapshotPtr snapshot = one->snapshot(SlotId{0}, length);
  ASSERT_TRUE(snapshot);
  EXPECT_GT(one->shape().kv_block, 0) << "it is copied in blocks";
  const std::vector<Token> expected = greedy(*one, 0, length, logits, 8);
  auto other = make_typed(GetParam());
  run(*other, 0, 0, std::span(tokens).first(5));
  ASSERT_TRUE(other->restore(SlotId{2}, *snapshot, length));
  EXPECT_EQ(greedy(*other, 2, length, logits, 8), expected);
  ASSERT_TRUE(other->restore(SlotId{1}, *snapshot, length - 3)) << "cut, as for a prompt that begins like it";
  EXPECT_LT(difference(logits, run(*other, 1, length - 3, std::span(tokens).last(3))), kClose);
}

TEST_P(LlamaKvTypes, SlotsMoveAndChangePlaces) {
  const std::vector<Token> tokens = typed_prompt();
  const auto length = static_cast<TokenCount>(tokens.size());
  auto model = make_typed(GetParam());
  const std::vector<float> logits = run(*model, 0, 0, tokens);
  const std::vector<Token> expected = greedy(*model, 0, length, logits, 8);
  model->trim(SlotId{0}, length);
  model->move(SlotId{0}, SlotId{1});
  run(*model, 2, 0, std::span(tokens).first(7));
  model->exchange(SlotId{1}, SlotId{2});
  EXPECT_EQ(greedy(*model, 2, length, logits, 8), expected);
}

INSTANTIATE_TEST_SUITE_P(All, LlamaKvTypes, testing::ValuesIn(kv_types().begin(), kv_types().end()),
                         [](const auto& instance) { return std::string(name(instance.param)); });

// Windows that slide, and states of recurrent layers beside them.
TEST(LlamaKvTypesOfTwoKinds, GoOnFromSnapshotsOfOtherKindsOfMemory) {
  for (const std::string model : {"random-swa", "random-hybrid"}) {
    for (const bool unified : {false, true}) {
      const auto weights = LlamaWeights::from_file(std::string(CHASQUI_BINARY_DIR) + "/models/" + model + ".gguf");
      ASSERT_TRUE(weights) << weights.error().message << " (make test-models)";
      ModelConfig config{.slots = 2, .cells = 2 * 512, .unified = unified, .threads = 1};
      config.kv_keys = KvType::q8_0;
      config.kv_values = KvType::q4_0;
      auto one = LlamaModel::make(*weights, config);
      auto other = LlamaModel::make(*weights, config);
      ASSERT_TRUE(one && other) << model;
      std::vector<Token> tokens(320);
      for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>(100 + i * i % 977);
      const std::vector<float> logits = run(**one, 0, 0, tokens);
      const KvSnapshotPtr snapshot = (*one)->snapshot(SlotId{0}, 320);
      ASSERT_TRUE(snapshot && (*other)->restore(SlotId{1}, *snapshot, 320)) << model;
      EXPECT_EQ(greedy(**other, 1, 320, logits, 6), greedy(**one, 0, 320, logits, 6)) << model;
    }
  }
}

TEST(LlamaKvTypesOfTwoKinds, Work) {
  const auto model = with_types(KvType::q8_0, KvType::q4_0);
  ASSERT_TRUE(model) << model.error().message;
  run(**model, 0, 0, typed_prompt());
}

TEST(LlamaKvTypesOfTwoKinds, QuantizedValuesWithoutFlashAttentionAreRefusedWithTheReason) {
  const auto model = with_types(KvType::f16, KvType::q4_0, FlashAttention::off);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("quantized V cache requires flash_attn"), std::string::npos)
      << model.error().message;
  EXPECT_TRUE(with_types(KvType::q4_0, KvType::f16, FlashAttention::off)) << "keys do not need it";
}

}  // namespace
}  // namespace chasqui
