// Draft heads, with the random models of `make test-models`: what they know of a slot is right after whatever
// happened to it, and the model computes with them what it computes without.
#include "model/llama_heads.h"

#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "model/llama_model.h"
#include "model/test_rows.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

constexpr TokenCount kDraftTokens = 3;

std::string head_path(const std::string& name) { return std::string(CHASQUI_BINARY_DIR) + "/models/" + name + ".gguf"; }

WeightsPtr head_weights(const std::string& name) {
  WeightsOptions options;
  options.heads = true;
  auto weights = LlamaWeights::from_file(head_path(name), options);
  CHECK(weights, weights ? "" : weights.error().message + " (make test-models)");
  return *weights;
}

// In a file of their own, or in the model's, whose memory may be partly a state.
enum class HeadKind { eagle3, mtp, mtp_and_state, mtp_state_and_experts };

const char* model_of(HeadKind kind) {
  switch (kind) {
    case HeadKind::eagle3: return "random-24m-f16";
    case HeadKind::mtp: return "random-mtp";
    case HeadKind::mtp_and_state: return "random-qwen35";
    case HeadKind::mtp_state_and_experts: return "random-qwen35moe";
  }
  return "";
}

class LlamaHeadsTest : public testing::TestWithParam<std::tuple<HeadKind, bool>> {
 protected:
  std::unique_ptr<LlamaModel> make(bool with_heads = true) const {
    const auto& [kind, unified] = GetParam();
    ModelConfig config{.slots = 3, .cells = 3 * 256, .unified = unified, .outputs_max = 16, .threads = 1};
    config.warm_up = false;
    WeightsPtr weights = head_weights(model_of(kind));
    if (!weights->info().trims_anywhere()) config.rollback = kDraftTokens;
    if (with_heads) config.heads.own = kind != HeadKind::eagle3;
    if (with_heads && kind == HeadKind::eagle3) {
      auto heads = load_heads(head_path("random-eagle3"), {}, weights->info());
      CHECK(heads, heads ? "" : heads.error().message);
      config.heads.weights = *heads;
    }
    auto model = LlamaModel::make(std::move(weights), config);
    CHECK(model, model ? "" : model.error().message);
    return std::move(*model);
  }

  static std::vector<Token> text(TokenCount length, std::uint32_t state = 1) {
    std::vector<Token> tokens;
    for (TokenCount i = 0; i < length; ++i) {
      state = state * 1664525 + 1013904223;
      tokens.push_back(static_cast<Token>((state >> 8) % 32000));
    }
    return tokens;
  }

  // A batch that checks draft tokens of what comes after the last of `tokens`, which the slot does not hold yet.
  static Batch checking(std::int32_t slot, const std::vector<Token>& tokens) {
    Batch batch;
    const auto position = static_cast<TokenCount>(tokens.size()) - 1;
    add_rows(batch, slot, position, std::span(tokens).last(1));
    for (TokenCount i = 0; i < kDraftTokens; ++i) batch.rows.push_back({-1, position + 1 + i, SlotId{slot}, true});
    batch.parts.push_back({nullptr, SlotId{slot}, 0, 1, true, kDraftTokens, 0});
    return batch;
  }
  static std::vector<Token> drafted(const Batch& batch) {
    std::vector<Token> tokens;
    for (std::size_t i = 1; i < batch.rows.size(); ++i) tokens.push_back(batch.rows[i].token);
    return tokens;
  }

  // What heads draft that have seen all of it in one batch.
  std::vector<Token> expected(const std::vector<Token>& tokens) const {
    const auto model = make();
    run(*model, 0, 0, std::span(tokens).first(tokens.size() - 1));
    Batch batch = checking(0, tokens);
    EXPECT_TRUE(model->heads()->draft(batch));
    return drafted(batch);
  }

  // Random heads are undecided now and then, and other numbers of rows are rounded in other ways. With a state that is
  // wrong they draft something else every time.
  void compare(const std::vector<Token>& found, const std::vector<Token>& expected) {
    for (std::size_t i = 0; i < found.size(); ++i) (found[i] == expected[i] ? same_ : others_) += 1;
  }
  void TearDown() override { EXPECT_GE(same_, 3 * others_); }

  // A step that checks draft tokens, of which so many are made right, and is told what follows.
  void step(LlamaModel& model, std::int32_t slot, std::vector<Token>& tokens, TokenCount right,
            bool draft_tokens = true) {
    Batch batch = checking(slot, tokens);
    if (draft_tokens) {
      EXPECT_TRUE(model.heads()->draft(batch));
    }
    const std::vector<Token> next = text(kDraftTokens + 1, static_cast<std::uint32_t>(tokens.size()));
    for (TokenCount i = 0; i < kDraftTokens; ++i) {
      Token& token = batch.rows[static_cast<std::size_t>(1 + i)].token;
      token = i < right ? next[static_cast<std::size_t>(i)] : (token + 1) % 32000;
    }
    ASSERT_EQ(model.decode(batch), DecodeStatus::ok);
    model.heads()->learn(batch);
    const TokenCount held = batch.rows.front().position + 1 + right;
    if (right < kDraftTokens) model.trim(SlotId{slot}, held);
    tokens.insert(tokens.end(), next.begin(), next.begin() + right + 1);
    ASSERT_EQ(static_cast<TokenCount>(tokens.size()), held + 1);
  }

  int same_ = 0;
  int others_ = 0;
};

TEST_P(LlamaHeadsTest, DraftTheSameHoweverTheTokensCame) {
  const std::vector<Token> prompt = text(20);
  std::vector<Token> tokens = prompt;
  tokens.push_back(5);
  const auto model = make();
  run(*model, 1, 0, std::span(prompt).first(8));
  run(*model, 1, 8, std::span(prompt).subspan(8));
  for (const TokenCount right : {1, 0, kDraftTokens, 2, 0}) {
    step(*model, 1, tokens, right);
    Batch batch = checking(1, tokens);
    EXPECT_TRUE(model->heads()->draft(batch));
    compare(drafted(batch), expected(tokens));
  }
  run(*model, 1, static_cast<TokenCount>(tokens.size()) - 1, std::span(tokens).last(1));
  tokens.push_back(9);
  Batch batch = checking(1, tokens);
  EXPECT_TRUE(model->heads()->draft(batch));
  compare(drafted(batch), expected(tokens));
}

// Rows that only fill up are taken back as well, and then there was no draft before.
TEST_P(LlamaHeadsTest, DraftTheSameAfterRowsThatWereTakenBackWithoutDrafting) {
  std::vector<Token> tokens = text(12);
  const auto model = make();
  run(*model, 0, 0, std::span(tokens).first(11));
  step(*model, 0, tokens, 1, false);
  step(*model, 0, tokens, 0, false);
  Batch batch = checking(0, tokens);
  EXPECT_TRUE(model->heads()->draft(batch));
  compare(drafted(batch), expected(tokens));
}

TEST_P(LlamaHeadsTest, TheModelComputesTheSameWithThem) {
  const std::vector<Token> prompt = text(24);
  const auto plain = make(false);
  EXPECT_EQ(plain->heads(), nullptr);
  const std::vector<Token> said = greedy(*plain, 0, 24, run(*plain, 0, 0, prompt), 12);
  const auto model = make();
  EXPECT_EQ(model->heads()->draft_tokens(), kDraftTokens);
  compare(greedy(*model, 0, 24, run(*model, 0, 0, prompt), 12), said);
}

TEST_P(LlamaHeadsTest, NothingIsKnownOfASlotThatHoldsSomethingElse) {
  const auto model = make();
  std::vector<Token> tokens = text(20);
  const auto length = static_cast<TokenCount>(tokens.size()) - 1;
  const auto knows = [&](std::int32_t slot) {
    Batch batch = checking(slot, tokens);
    EXPECT_TRUE(model->heads()->draft(batch));
    return drafted(batch).front() != -1;
  };
  run(*model, 0, 0, std::span(tokens).first(static_cast<std::size_t>(length)));
  EXPECT_TRUE(knows(0));
  const KvSnapshotPtr copy = model->snapshot(SlotId{0}, length);
  ASSERT_TRUE(copy);
  model->move(SlotId{0}, SlotId{1});
  EXPECT_FALSE(knows(0));
  EXPECT_FALSE(knows(1));
  step(*model, 1, tokens, 0, false);
  EXPECT_TRUE(knows(1)) << "they begin anew with what comes next";
  ASSERT_TRUE(model->restore(SlotId{2}, *copy, length));
  tokens.resize(static_cast<std::size_t>(length) + 1);
  EXPECT_FALSE(knows(2));
  step(*model, 2, tokens, 0, false);
  EXPECT_TRUE(knows(2));
  if (model->shape().cuts_snapshots) {
    model->exchange(SlotId{1}, SlotId{2});
    EXPECT_FALSE(knows(2));
  }
  model->trim(SlotId{2}, 0);
  run(*model, 2, 0, std::span(tokens).first(10));
  run(*model, 2, 10, std::span(tokens).subspan(10, tokens.size() - 11));
  EXPECT_TRUE(knows(2));
  if (model->shape().trims_anywhere) {
    model->trim(SlotId{2}, 4);
    tokens.resize(5);
    EXPECT_FALSE(knows(2)) << "that far back nothing was kept";
    run(*model, 2, 4, std::span(tokens).last(1));
    tokens.push_back(7);
    EXPECT_TRUE(knows(2));
  }
  Batch unlearned;
  add_rows(unlearned, 2, static_cast<TokenCount>(tokens.size()) - 1, std::span(tokens).last(1));
  ASSERT_EQ(model->decode(unlearned), DecodeStatus::ok);
  tokens.push_back(7);
  EXPECT_FALSE(knows(2)) << "they were not told of the last token";
  step(*model, 2, tokens, 0, false);
  EXPECT_TRUE(knows(2));
}

// Such rows are computed in another order where each slot has a stream of its own, or a state.
TEST_P(LlamaHeadsTest, PromptsOfUnequalLengthAreOnlyLearnedOfInOrder) {
  const auto model = make();
  const std::vector<Token> prompt = text(20);
  std::vector<Token> tokens = prompt;
  tokens.push_back(5);
  Batch batch;
  add_rows(batch, 0, 0, std::span(prompt).first(7));
  add_rows(batch, 1, 0, prompt);
  ASSERT_EQ(model->decode(batch), DecodeStatus::ok);
  model->heads()->learn(batch);
  batch = checking(1, tokens);
  EXPECT_TRUE(model->heads()->draft(batch));
  const auto nothing = std::vector<Token>(kDraftTokens, -1);
  const bool in_order = std::get<1>(GetParam()) && model->shape().trims_anywhere;
  compare(drafted(batch), in_order ? expected(tokens) : nothing);
}

TEST_P(LlamaHeadsTest, DraftsForSeveralSlotsAtOnce) {
  const auto model = make();
  std::vector<std::vector<Token>> texts;
  Batch all;
  for (std::int32_t slot = 0; slot < 3; ++slot) {
    texts.push_back(text(12, 7 + static_cast<std::uint32_t>(slot)));
    run(*model, slot, 0, std::span(texts.back()).first(11));
    const Batch one = checking(slot, texts.back());
    BatchPart part = one.parts.front();
    part.first_row = static_cast<std::int32_t>(all.rows.size());
    all.rows.insert(all.rows.end(), one.rows.begin(), one.rows.end());
    all.parts.push_back(part);
  }
  EXPECT_TRUE(model->heads()->draft(all));
  for (std::size_t slot = 0; slot < 3; ++slot) {
    const auto begin = all.rows.begin() + static_cast<std::ptrdiff_t>(slot * (1 + kDraftTokens));
    Batch one;
    one.rows.assign(begin, begin + 1 + kDraftTokens);
    compare(drafted(one), expected(texts[slot]));
  }
  EXPECT_EQ(model->decode(all), DecodeStatus::ok);
}

std::string head_test_name(const testing::TestParamInfo<std::tuple<HeadKind, bool>>& test) {
  const auto& [kind, unified] = test.param;
  const char* const names[] = {"eagle3", "mtp", "mtpState", "mtpStateExperts"};
  return std::string(names[static_cast<std::size_t>(kind)]) + (unified ? "Pool" : "Streams");
}

INSTANTIATE_TEST_SUITE_P(Kinds, LlamaHeadsTest,
                         testing::Combine(testing::Values(HeadKind::eagle3, HeadKind::mtp, HeadKind::mtp_and_state,
                                                          HeadKind::mtp_state_and_experts),
                                          testing::Bool()),
                         head_test_name);

TEST(LlamaHeads, FilesThatDoNotFitAreRefused) {
  const auto demo = load_heads(test_model_path(), {}, test_weights()->info());
  ASSERT_FALSE(demo);
  EXPECT_NE(demo.error().message.find("has no EAGLE-3 heads"), std::string::npos) << demo.error().message;
  const auto narrow = load_heads(head_path("random-eagle3"), {}, test_weights()->info());
  ASSERT_FALSE(narrow);
  EXPECT_NE(narrow.error().message.find("states of width 288"), std::string::npos) << narrow.error().message;
  ModelInfo shallow = head_weights("random-24m-f16")->info();
  shallow.layers = 4;
  const auto deep = load_heads(head_path("random-eagle3"), {}, shallow);
  ASSERT_FALSE(deep);
  EXPECT_NE(deep.error().message.find("they read layer 5"), std::string::npos) << deep.error().message;
  EXPECT_FALSE(load_heads(head_path("nothing"), {}, shallow));
}

TEST(LlamaHeads, AModelSaysWhetherItHasSome) {
  ModelInfo info = head_weights("random-mtp")->info();
  EXPECT_EQ(info.heads, 1);
  EXPECT_TRUE(has_usable_heads(info));
  info.architecture = "unknown";
  EXPECT_FALSE(has_usable_heads(info));
  ModelInfo state = head_weights("random-qwen35")->info();
  EXPECT_EQ(state.heads, 1);
  EXPECT_TRUE(has_usable_heads(state));
  state.heads = 2;
  EXPECT_FALSE(has_usable_heads(state)) << "libllama would end the process";
  EXPECT_EQ(test_weights()->info().heads, 0);
  EXPECT_FALSE(has_usable_heads(test_weights()->info()));
}

}  // namespace
}  // namespace chasqui
