// Rows that a model whose memory is a state takes back, for rejected draft tokens, and steps that are cut, also where
// there is a sliding window. With the random models that `make test-models` makes.
#include <filesystem>
#include <string>
#include <thread>
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
  void load(const std::string& name, TokenCount rollback, TokenCount slot_cells = 512) {
    const std::string path = std::string(CHASQUI_BINARY_DIR) + "/models/" + name + ".gguf";
    ASSERT_TRUE(std::filesystem::exists(path)) << path << " is not there: make test-models";
    const auto weights = LlamaWeights::from_file(path);
    ASSERT_TRUE(weights) << weights.error().message;
    auto model = LlamaModel::make(
        *weights, {.slots = 3, .cells = 3 * slot_cells, .outputs_max = 8, .threads = 1, .rollback = rollback});
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

// Of each kind of layer that keeps a state.
class LlamaRollbackOf : public LlamaRollback, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Kinds, LlamaRollbackOf, testing::Values("random-hybrid", "random-qwen35"));

TEST_P(LlamaRollbackOf, AnAnswerGoesOnAsIfItHadNotBeenDrafted) {
  load(GetParam(), kRollback);
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
TEST_P(LlamaRollbackOf, SomeOfTheRowsStay) {
  load(GetParam(), kRollback);
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
TEST_P(LlamaRollbackOf, CopiesAreOfWhatIsLeft) {
  load(GetParam(), kRollback);
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

class LlamaCutStep : public LlamaRollback, public testing::WithParamInterface<std::pair<const char*, TokenCount>> {
 protected:
  // A step of one prompt that arrivals may cut.
  Batch reading(std::int32_t slot, TokenCount position, std::span<const Token> tokens) {
    Batch batch;
    batch.kind = Batch::Kind::prefill;
    batch.cut_by = 0;
    add_rows(batch, slot, position, tokens);
    batch.parts.push_back({.slot = SlotId{slot}, .rows = static_cast<std::int32_t>(tokens.size())});
    return batch;
  }
};

TEST_P(LlamaCutStep, LeavesTheStateAsItWas) {
  load(GetParam().first, GetParam().second);
  const std::vector<Token> more(prompt_.rbegin(), prompt_.rend());
  for (const std::int32_t slot : {0, 1, 2}) run(*model_, slot, 0, prompt_);
  const Batch batch = reading(1, kLength, more);
  const std::uint64_t before = model_->operations();
  const std::vector<float> expected = run(*model_, 0, kLength, more);
  const std::uint64_t all = model_->operations() - before;
  ASSERT_GT(all, 20u);
  const KvSnapshotPtr unread = model_->snapshot(SlotId{1}, kLength);
  ASSERT_TRUE(unread);
  int midway = 0;
  for (std::uint64_t turn = 0; turn < 10 || (midway == 0 && turn < 100); ++turn) {
    const std::uint64_t part = turn % 10;
    const std::uint64_t end = model_->operations() + all * part / 10;
    if (part == 0) model_->request_abort();
    std::thread other([&] {
      while (model_->operations() < end) std::this_thread::yield();
      model_->request_abort();
    });
    const DecodeStatus status = model_->decode(batch);
    other.join();
    model_->clear_abort();
    if (part > 0 && status == DecodeStatus::ok) {  // that thread got no core in time
      model_->trim(SlotId{1}, 0);
      ASSERT_TRUE(model_->restore(SlotId{1}, *unread, kLength));
      continue;
    }
    ASSERT_EQ(status, DecodeStatus::aborted) << part;
    if (part > 0) ++midway;
    const KvSnapshotPtr left = model_->snapshot(SlotId{1}, kLength);
    ASSERT_TRUE(left && model_->restore(SlotId{0}, *left, kLength));
    EXPECT_EQ(run(*model_, 0, kLength, more), expected) << part;
  }
  EXPECT_GT(midway, 0);
  model_->trim(SlotId{1}, 0);
  run(*model_, 1, 0, prompt_);
  model_->request_abort();
  Batch joined = reading(1, kLength, more);
  add_rows(joined, 2, kLength, more);
  joined.parts.push_back({.slot = SlotId{2}, .first_row = kLength, .rows = kLength});
  EXPECT_EQ(model_->decode(joined), DecodeStatus::ok) << "one of several prompts is computed to its end";
}

INSTANTIATE_TEST_SUITE_P(Kinds, LlamaCutStep,
                         testing::Values(std::pair{"random-hybrid", 0}, std::pair{"random-hybrid", kRollback},
                                         std::pair{"random-qwen35", kRollback}, std::pair{"random-recurrent", 0}));

// The cells of a window are a ring: the rows lie where they lay, so that what they add up is added in the same order.
class LlamaCutWindow : public LlamaCutStep {};

TEST_P(LlamaCutWindow, IsComputedAgainWithTheSameBytes) {
  load(GetParam().first, 0, 2048);
  constexpr TokenCount kChunk = 512;
  std::vector<Token> tokens;
  for (TokenCount i = 0; i < 3 * kChunk + 1; ++i) tokens.push_back(static_cast<Token>(300 + i * 37 % 600));
  const auto chunk = [&](TokenCount at) { return std::span(tokens).subspan(static_cast<std::size_t>(at), kChunk); };
  const std::span<const Token> last = std::span(tokens).last(1);
  std::vector<std::vector<float>> expected;
  for (TokenCount at = 0; at < 3 * kChunk; at += kChunk) expected.push_back(run(*model_, 0, at, chunk(at)));
  expected.push_back(run(*model_, 0, 3 * kChunk, last));
  for (TokenCount cut = 0; cut < 3 * kChunk; cut += kChunk) {
    model_->trim(SlotId{1}, 0);
    for (TokenCount at = 0; at < 3 * kChunk; at += kChunk) {
      if (at == cut) {
        model_->request_abort();
        ASSERT_EQ(model_->decode(reading(1, at, chunk(at))), DecodeStatus::aborted);
        model_->clear_abort();
      }
      EXPECT_EQ(run(*model_, 1, at, chunk(at)), expected[static_cast<std::size_t>(at / kChunk)]) << cut << " " << at;
    }
    EXPECT_EQ(run(*model_, 1, 3 * kChunk, last), expected.back()) << cut;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LlamaCutWindow,
                         testing::Values(std::pair{"random-swa", 0}, std::pair{"random-24m-f16", 0}));

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
