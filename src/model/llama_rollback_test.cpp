// Rows that a model whose memory is a state takes back, which rejected draft tokens need. With the random models that
// `make test-models` makes.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/llama_model.h"
#include "model/test_rows.h"

namespace chasqui {
namespace {

constexpr TokenCount kLength = 40;
constexpr TokenCount kRollback = 3;

class LlamaRollback : public testing::Test {
 protected:
  void load(const std::string& name, TokenCount rollback) {
    const std::string path = std::string(CHASQUI_BINARY_DIR) + "/models/" + name + ".gguf";
    ASSERT_TRUE(std::filesystem::exists(path)) << path << " is not there: make test-models";
    const auto weights = LlamaWeights::from_file(path);
    ASSERT_TRUE(weights) << weights.error().message;
    auto model = LlamaModel::make(*weights,
                                  {.slots = 3, .cells = 3 * 512, .outputs_max = 8, .threads = 1, .rollback = rollback});
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
    prompt_.clear();
    for (TokenCount i = 0; i < kLength; ++i) {
      prompt_.push_back(static_cast<Token>((i * 7919 + 13) % (*weights)->info().vocabulary));
    }
  }

  // A step whose row is followed by `wrong` draft tokens, which are taken back. Logits of the row.
  std::vector<float> step(std::int32_t slot, TokenCount position, Token token, TokenCount wrong) {
    Batch batch;
    for (TokenCount i = 0; i <= wrong; ++i) batch.rows.push_back({token + i, position + i, SlotId{slot}, true});
    EXPECT_EQ(model_->decode(batch), DecodeStatus::ok);
    std::vector<float> logits = copy(model_->logits(0));
    if (wrong > 0) model_->trim(SlotId{slot}, position + 1);
    return logits;
  }

  std::unique_ptr<LlamaModel> model_;
  std::vector<Token> prompt_;
};

TEST_F(LlamaRollback, AnAnswerGoesOnAsIfItHadNotBeenDrafted) {
  load("random-hybrid", kRollback);
  EXPECT_EQ(model_->shape().rollback, kRollback);
  EXPECT_FALSE(model_->shape().trims_anywhere);
  for (const std::int32_t slot : {0, 1}) run(*model_, slot, 0, prompt_);
  for (TokenCount n = 0; n < 12; ++n) {
    const Token token = 100 + n;
    const std::vector<float> plain = step(0, kLength + n, token, 0);
    const std::vector<float> drafted = step(1, kLength + n, token, n % (kRollback + 1));
    EXPECT_LT(difference(plain, drafted), kClose) << n;
    EXPECT_EQ(best(plain), best(drafted)) << n;
  }
}

// Those that were right stay: the state is the one behind them.
TEST_F(LlamaRollback, SomeOfTheRowsStay) {
  load("random-hybrid", kRollback);
  for (const std::int32_t slot : {0, 1}) run(*model_, slot, 0, prompt_);
  const std::vector<Token> said = {5, 6, 7, 8};
  run(*model_, 0, kLength, std::span(said).first(3));
  run(*model_, 1, kLength, said);
  model_->trim(SlotId{1}, kLength + 3);
  const Token next = 9;
  const std::vector<float> plain = run(*model_, 0, kLength + 3, std::span(&next, 1));
  EXPECT_LT(difference(plain, run(*model_, 1, kLength + 3, std::span(&next, 1))), kClose);
}

// What is copied out, moved or restored after rows were taken back is what is left.
TEST_F(LlamaRollback, CopiesAreOfWhatIsLeft) {
  load("random-hybrid", kRollback);
  run(*model_, 0, 0, prompt_);
  step(0, kLength, 50, 2);
  const KvSnapshotPtr snapshot = model_->snapshot(SlotId{0}, kLength + 1);
  ASSERT_TRUE(snapshot);
  model_->move(SlotId{0}, SlotId{2});
  ASSERT_TRUE(model_->restore(SlotId{1}, *snapshot, kLength + 1));
  run(*model_, 0, 0, prompt_);
  step(0, kLength, 50, 0);
  const std::vector<float> expected = step(0, kLength + 1, 60, 0);
  for (const std::int32_t slot : {1, 2}) {
    EXPECT_LT(difference(expected, step(slot, kLength + 1, 60, 0)), kClose) << "slot " << slot;
  }
}

TEST_F(LlamaRollback, IsNothingWhereTheModelOrItsCallerDoesNotHaveIt) {
  load("random-recurrent", kRollback);
  EXPECT_EQ(model_->shape().rollback, 0);
  load("random-hybrid", 0);
  EXPECT_EQ(model_->shape().rollback, 0);
  load("random-swa", kRollback);
  EXPECT_EQ(model_->shape().rollback, 0);
  EXPECT_TRUE(model_->shape().trims_anywhere);
}

}  // namespace
}  // namespace chasqui
