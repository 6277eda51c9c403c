// What was copied out of a slot goes on in another one: with the demo model, and with the random models of other
// kinds (sliding window, recurrent, hybrid) that `make test-models` makes.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "model/llama_model.h"
#include "model/test_rows.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

constexpr TokenCount kSnapshotLength = 320;  // longer than the window of random-swa

std::string path_of(const std::string& name) {
  return name == "demo" ? test_model_path() : std::string(CHASQUI_BINARY_DIR) + "/models/" + name + ".gguf";
}

WeightsPtr weights_of(const std::string& name) {
  static std::map<std::string, WeightsPtr> loaded;
  WeightsPtr& weights = loaded[name];
  if (!weights) {
    auto fresh = LlamaWeights::from_file(path_of(name));
    CHECK(fresh, fresh ? "" : fresh.error().message);
    weights = *fresh;
  }
  return weights;
}

std::vector<std::byte> snapshot_bytes(const KvSnapshot& snapshot) {
  std::vector<std::byte> bytes;
  for (const KvBlockPtr& block : snapshot.blocks()) {
    bytes.insert(bytes.end(), block->bytes().begin(), block->bytes().end());
  }
  return bytes;
}

// A snapshot in one piece with the first bytes of another one, `of_them`, and zeros after those.
KvSnapshotPtr altered(const KvSnapshot& snapshot, std::size_t size, std::size_t of_them) {
  const auto copy = std::make_shared<KvSnapshot>(size, snapshot.tokens());
  std::memset(copy->bytes().data(), 0, size);
  std::memcpy(copy->bytes().data(), snapshot_bytes(snapshot).data(), of_them);
  return copy;
}

class LlamaSnapshot : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  void SetUp() override {
    const auto& [name, unified] = GetParam();
    ASSERT_TRUE(std::filesystem::exists(path_of(name))) << path_of(name) << " is not there: make test-models";
    const WeightsPtr weights = weights_of(name);
    auto model = LlamaModel::make(weights, {.slots = 3, .cells = 3 * 512, .unified = unified, .threads = 1});
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
    std::uint32_t state = 1;
    for (TokenCount i = 0; i < kSnapshotLength; ++i) {
      state = state * 1664525 + 1013904223;
      prompt_.push_back(static_cast<Token>((state >> 8) % static_cast<std::uint32_t>(weights->info().vocabulary)));
    }
  }

  std::span<const Token> prompt(TokenCount from = 0) const {
    return std::span(prompt_).subspan(static_cast<std::size_t>(from));
  }
  std::vector<float> read(std::int32_t slot, TokenCount from = 0) { return run(*model_, slot, from, prompt(from)); }

  std::unique_ptr<LlamaModel> model_;
  std::vector<Token> prompt_;
};

TEST_P(LlamaSnapshot, GoesOnInAnotherSlotWithTheSameAnswer) {
  const std::vector<float> logits = read(0);
  const KvSnapshotPtr snapshot = model_->snapshot(SlotId{0}, kSnapshotLength);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->tokens(), kSnapshotLength);
  const std::vector<Token> expected = greedy(*model_, 0, kSnapshotLength, logits, 12);
  for (const std::int32_t slot : {2, 1}) {
    ASSERT_TRUE(model_->restore(SlotId{slot}, *snapshot, kSnapshotLength));
    EXPECT_EQ(greedy(*model_, slot, kSnapshotLength, logits, 12), expected) << "slot " << slot;
  }
  // And where it came from, once that is empty.
  model_->trim(SlotId{0}, 0);
  ASSERT_TRUE(model_->restore(SlotId{0}, *snapshot, kSnapshotLength));
  EXPECT_EQ(greedy(*model_, 0, kSnapshotLength, logits, 12), expected);
}

TEST_P(LlamaSnapshot, OfAnAnswerGoesOnWhereItWas) {
  const std::vector<float> logits = read(0);
  std::vector<Token> said = greedy(*model_, 0, kSnapshotLength, logits, 6);
  const KvSnapshotPtr snapshot = model_->snapshot(SlotId{0}, kSnapshotLength + 6);
  ASSERT_TRUE(snapshot);
  const Token next = 7;
  const std::vector<float> expected = run(*model_, 0, kSnapshotLength + 6, std::span(&next, 1));
  ASSERT_TRUE(model_->restore(SlotId{1}, *snapshot, kSnapshotLength + 6));
  EXPECT_LT(difference(expected, run(*model_, 1, kSnapshotLength + 6, std::span(&next, 1))), kClose);
}

TEST_P(LlamaSnapshot, CanBeCutWhereItHoldsAllOfIt) {
  const bool cuts = model_->shape().cuts_snapshots;
  const std::string name = std::get<0>(GetParam());
  const bool state = name == "random-recurrent" || name == "random-hybrid" || name == "random-qwen35";
  EXPECT_EQ(cuts, name != "random-swa" && !state);
  const std::vector<float> logits = read(0);
  greedy(*model_, 0, kSnapshotLength, logits, 12);  // what is cut off
  const KvSnapshotPtr snapshot = model_->snapshot(SlotId{0}, kSnapshotLength + 12);
  ASSERT_TRUE(snapshot);
  for (const TokenCount keep : {kSnapshotLength - 1, kSnapshotLength / 2, 1}) {
    if (!cuts) {
      EXPECT_FALSE(model_->restore(SlotId{1}, *snapshot, keep));
      EXPECT_LT(difference(logits, read(1)), kClose) << "the slot is empty";
    } else {
      ASSERT_TRUE(model_->restore(SlotId{1}, *snapshot, keep));
      const std::vector<float> again = read(1, keep);
      EXPECT_LT(difference(logits, again), kClose);
    }
    model_->trim(SlotId{1}, 0);
  }
}

TEST_P(LlamaSnapshot, LeavesTheOtherSlotsAsTheyAre) {
  const std::vector<float> logits = read(0);
  const std::vector<Token> expected = greedy(*model_, 0, kSnapshotLength, logits, 8);
  model_->trim(SlotId{0}, 0);
  EXPECT_LT(difference(logits, read(0)), kClose);
  const KvSnapshotPtr snapshot = model_->snapshot(SlotId{0}, kSnapshotLength);
  ASSERT_TRUE(snapshot);
  ASSERT_TRUE(model_->restore(SlotId{1}, *snapshot, kSnapshotLength));
  model_->move(SlotId{1}, SlotId{2});
  EXPECT_EQ(greedy(*model_, 0, kSnapshotLength, logits, 8), expected);
  EXPECT_EQ(greedy(*model_, 2, kSnapshotLength, logits, 8), expected);
}

TEST_P(LlamaSnapshot, AMoveLeavesNothingOutThatATrimNeeds) {
  const std::vector<float> logits = read(0);
  greedy(*model_, 0, kSnapshotLength, logits, 12);
  model_->move(SlotId{0}, SlotId{2});
  if (!model_->shape().trims_anywhere) GTEST_SKIP() << "nothing to trim";
  model_->trim(SlotId{2}, kSnapshotLength / 2);
  EXPECT_LT(difference(logits, read(2, kSnapshotLength / 2)), kClose);
}

TEST_P(LlamaSnapshot, OfWhatTheSlotDoesNotHoldIsNone) {
  EXPECT_FALSE(model_->snapshot(SlotId{0}, 1)) << "an empty slot";
  read(0);
  EXPECT_FALSE(model_->snapshot(SlotId{0}, kSnapshotLength + 1));
  EXPECT_EQ(model_->snapshot(SlotId{0}, kSnapshotLength - 1) != nullptr, model_->shape().kv_block > 0);
  EXPECT_TRUE(model_->snapshot(SlotId{0}, kSnapshotLength));
}

// Not with bytes that were changed in their middle: libllama believes counts and positions.
TEST_P(LlamaSnapshot, ThatIsNoneOrCutShortIsRefusedAndTheSlotStaysEmpty) {
  const std::vector<float> logits = read(0);
  const KvSnapshotPtr whole = model_->snapshot(SlotId{0}, kSnapshotLength);
  ASSERT_TRUE(whole);
  const std::size_t size = whole->size();
  const std::vector<KvSnapshotPtr> bad = {
      altered(*whole, 0, 0),
      altered(*whole, 3, 3),
      altered(*whole, size, 0),
      altered(*whole, size / 2, size / 2),
      altered(*whole, size - 1, size - 1),
      altered(*whole, size + 8, size),
  };
  for (const KvSnapshotPtr& snapshot : bad) {
    EXPECT_FALSE(model_->restore(SlotId{1}, *snapshot, kSnapshotLength)) << snapshot->size() << " bytes of " << size;
    EXPECT_LT(difference(logits, read(1)), kClose) << "the slot is empty, and can be used";
    model_->trim(SlotId{1}, 0);
  }
  const auto other = std::make_shared<KvSnapshot>(size, kSnapshotLength + 1);
  std::ranges::copy(snapshot_bytes(*whole), other->bytes().begin());
  EXPECT_FALSE(model_->restore(SlotId{1}, *other, kSnapshotLength)) << "not as long as it says";
  ASSERT_TRUE(model_->restore(SlotId{1}, *whole, kSnapshotLength));
  EXPECT_EQ(greedy(*model_, 1, kSnapshotLength, logits, 4), greedy(*model_, 0, kSnapshotLength, logits, 4));
}

TEST_P(LlamaSnapshot, IsPutTogetherFromRangesThatWereCopiedOneByOne) {
  const TokenCount block = model_->shape().kv_block;
  EXPECT_EQ(block > 0, model_->shape().cuts_snapshots);
  if (block == 0) GTEST_SKIP() << "only whole snapshots";
  ASSERT_LT(block, kSnapshotLength);
  const std::vector<float> logits = read(0);
  const std::vector<Token> expected = greedy(*model_, 0, kSnapshotLength, logits, 8);
  const KvSnapshotPtr whole = model_->copy_out(SlotId{0}, 0, kSnapshotLength);
  const KvSnapshotPtr end = model_->copy_out(SlotId{0}, block, kSnapshotLength);
  ASSERT_TRUE(whole && end);
  const KvSnapshotPtr joined = KvSnapshot::joined(*whole, block, *end);
  EXPECT_EQ(snapshot_bytes(*joined), snapshot_bytes(*whole));
  EXPECT_EQ(joined->blocks().front(), whole->blocks().front());
  ASSERT_TRUE(model_->restore(SlotId{1}, *joined, kSnapshotLength));
  EXPECT_EQ(greedy(*model_, 1, kSnapshotLength, logits, 8), expected);
  const auto other = KvSnapshot::with_room(whole->size(), kSnapshotLength, 2 * block);
  EXPECT_FALSE(model_->restore(SlotId{2}, *other, kSnapshotLength)) << "blocks of another length";
  const auto thin = KvSnapshot::with_room(static_cast<std::size_t>(kSnapshotLength), kSnapshotLength, block);
  EXPECT_FALSE(model_->restore(SlotId{2}, *thin, kSnapshotLength)) << "of another model";
  EXPECT_FALSE(model_->snapshot(SlotId{2}, 1)) << "the slot is still empty";
}

TEST_P(LlamaSnapshot, ComesBackInPiecesBetweenTheStepsOfOthers) {
  const TokenCount block = model_->shape().kv_block;
  if (block == 0) GTEST_SKIP() << "only whole snapshots";
  const TokenCount keep = kSnapshotLength - 10;
  const std::vector<float> logits = read(0);
  const KvSnapshotPtr whole = model_->copy_out(SlotId{0}, 0, kSnapshotLength);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->size(), model_->shape().kv_token_bytes * static_cast<std::size_t>(kSnapshotLength));
  for (const bool from_slot : {false, true}) {
    Token said = 7;
    for (TokenCount from = 0; from < keep; from += block) {
      const TokenCount to = std::min(from + block, keep);
      ASSERT_TRUE(from_slot ? model_->copy_piece(SlotId{0}, SlotId{2}, keep, from, to)
                            : model_->restore_piece(SlotId{2}, *whole, keep, from, to));
      run(*model_, 1, from / block, std::span(&said, 1));
    }
    EXPECT_LT(difference(logits, read(2, keep)), kClose);
    model_->trim(SlotId{1}, 0);
    model_->trim(SlotId{2}, 0);
  }
  model_->trim(SlotId{0}, keep);
  EXPECT_LT(difference(logits, read(0, keep)), kClose) << "what was copied from is as it was";
}

// In one pool, the cells of two sequences that are read by turns are not next to each other.
TEST_P(LlamaSnapshot, OfCellsThatAreScatteredIsTheSame) {
  const std::vector<Token> other(prompt_.rbegin(), prompt_.rbegin() + 120);
  run(*model_, 0, 0, prompt().first(100));
  run(*model_, 1, 0, std::span(other).first(50));
  run(*model_, 0, 100, prompt().subspan(100, 100));
  run(*model_, 1, 50, std::span(other).subspan(50));
  const std::vector<float> logits = run(*model_, 0, 200, prompt(200));
  const KvSnapshotPtr snapshot = model_->snapshot(SlotId{0}, kSnapshotLength);
  ASSERT_TRUE(snapshot);
  const std::vector<Token> expected = greedy(*model_, 0, kSnapshotLength, logits, 8);
  model_->trim(SlotId{0}, 0);
  ASSERT_TRUE(model_->restore(SlotId{2}, *snapshot, kSnapshotLength));
  EXPECT_EQ(greedy(*model_, 2, kSnapshotLength, logits, 8), expected);
}

// What two sequences say when they have changed places, and what they would have said.
TEST_P(LlamaSnapshot, TwoThatChangePlacesGoOnAsIfTheyHadNot) {
  const std::vector<float> first = read(0);
  const std::vector<Token> expected = greedy(*model_, 0, kSnapshotLength, first, 8);
  const std::vector<Token> other(prompt_.rbegin(), prompt_.rbegin() + 100);
  const std::vector<float> second = run(*model_, 1, 0, other);
  const std::vector<Token> expected_other = greedy(*model_, 1, 100, second, 8);
  for (const std::int32_t slot : {0, 1}) model_->trim(SlotId{slot}, 0);

  EXPECT_LT(difference(first, read(0)), kClose);
  EXPECT_LT(difference(second, run(*model_, 1, 0, other)), kClose);
  model_->exchange(SlotId{0}, SlotId{1});
  EXPECT_EQ(greedy(*model_, 1, kSnapshotLength, first, 4), std::vector<Token>(expected.begin(), expected.begin() + 4));
  EXPECT_EQ(greedy(*model_, 0, 100, second, 8), expected_other);
  const KvSnapshotPtr whole = model_->snapshot(SlotId{1}, kSnapshotLength + 4);
  EXPECT_TRUE(whole) << "it holds what it held, and nothing of the other's";
  EXPECT_FALSE(model_->snapshot(SlotId{2}, kSnapshotLength));
}

TEST_P(LlamaSnapshot, ToChangePlacesWithAnEmptySlotIsToMove) {
  const std::vector<float> logits = read(0);
  const std::vector<Token> expected = greedy(*model_, 0, kSnapshotLength, logits, 8);
  model_->trim(SlotId{0}, 0);
  EXPECT_LT(difference(logits, read(0)), kClose);
  model_->exchange(SlotId{0}, SlotId{2});
  EXPECT_FALSE(model_->snapshot(SlotId{0}, kSnapshotLength));
  model_->exchange(SlotId{1}, SlotId{2});
  model_->exchange(SlotId{0}, SlotId{2});
  EXPECT_EQ(greedy(*model_, 1, kSnapshotLength, logits, 8), expected);
}

TEST(LlamaSnapshotWindow, ThatIsAsLongAsTheSlotCanBeCut) {
  auto made = LlamaModel::make(weights_of("random-swa"), {.slots = 2, .cells = 512, .threads = 1});
  ASSERT_TRUE(made) << made.error().message;
  LlamaModel& model = **made;
  EXPECT_TRUE(model.shape().cuts_snapshots);
  std::vector<Token> prompt(250);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<Token>(100 + i * i % 977);
  const std::vector<float> logits = run(model, 0, 0, prompt);
  const KvSnapshotPtr snapshot = model.snapshot(SlotId{0}, 250);
  ASSERT_TRUE(snapshot && model.restore(SlotId{1}, *snapshot, 100));
  EXPECT_LT(difference(logits, run(model, 1, 100, std::span(prompt).subspan(100))), kClose);
}

std::string name_of(const testing::TestParamInfo<std::tuple<std::string, bool>>& instance) {
  std::string name = std::get<0>(instance.param) + (std::get<1>(instance.param) ? "_unified" : "");
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, LlamaSnapshot,
                         testing::Combine(testing::Values("demo", "random-swa", "random-recurrent", "random-hybrid",
                                                          "random-qwen35", "random-24m-f16"),
                                          testing::Bool()),
                         name_of);

}  // namespace
}  // namespace chasqui
