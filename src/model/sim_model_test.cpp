#include "model/sim_model.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/loaded_model.h"

namespace chasqui {
namespace {

std::shared_ptr<const SimTokenizer> tokenizer() {
  static const auto instance = std::make_shared<const SimTokenizer>();
  return instance;
}

SimModel make_model(std::int32_t slots = 4, TokenCount cells = 4096, SimOptions options = {}) {
  return SimModel(tokenizer(), {.slots = slots, .cells = cells, .rows_max = 64}, std::move(options));
}

Token best(std::span<const float> row) { return static_cast<Token>(std::ranges::max_element(row) - row.begin()); }

Batch rows(std::int32_t slot, TokenCount position, const std::vector<Token>& tokens) {
  Batch batch;
  batch.kind = tokens.size() > 1 ? Batch::Kind::prefill : Batch::Kind::decode;
  for (Token token : tokens) batch.rows.push_back({token, position++, SlotId{slot}, false});
  batch.rows.back().output = true;
  return batch;
}

// Greedy answer to a prompt, at most `limit` tokens, the end token not included.
std::vector<Token> answer(SimModel& model, std::int32_t slot, std::string_view text, std::size_t limit = 200) {
  const std::vector<Token> prompt = tokenizer()->tokenize(text, AddSpecial::no, ParseSpecial::yes);
  EXPECT_EQ(model.decode(rows(slot, 0, prompt)), DecodeStatus::ok);
  Token next = best(model.logits(static_cast<std::int32_t>(prompt.size()) - 1));
  std::vector<Token> tokens;
  while (tokens.size() < limit && !tokenizer()->is_end_of_generation(next)) {
    const auto position = static_cast<TokenCount>(prompt.size() + tokens.size());
    tokens.push_back(next);
    EXPECT_EQ(model.decode(rows(slot, position, {next})), DecodeStatus::ok);
    next = best(model.logits(0));
  }
  return tokens;
}

constexpr std::string_view kHello = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";

TEST(SimModel, TheSamePromptGivesTheSameAnswerInAnySlot) {
  SimModel model = make_model();
  const std::vector<Token> first = answer(model, 0, kHello);
  EXPECT_GT(first.size(), 0u);
  EXPECT_LT(first.size(), 200u);  // it ends by itself
  EXPECT_EQ(answer(model, 2, kHello), first);
  model.trim(SlotId{0}, 0);
  EXPECT_EQ(answer(model, 0, kHello), first);
}

TEST(SimModel, EveryTokenOfTheHistoryMatters) {
  SimModel model = make_model();
  EXPECT_NE(answer(model, 0, "one two", 10), answer(model, 1, "One two", 10));
}

TEST(SimModel, ChunksAndInterleavingChangeNothing) {
  SimModel whole = make_model();
  const std::vector<Token> expected = answer(whole, 0, kHello, 5);

  SimModel chunked = make_model();
  const std::vector<Token> prompt = tokenizer()->tokenize(kHello, AddSpecial::no, ParseSpecial::yes);
  const std::vector<Token> head(prompt.begin(), prompt.begin() + 7);
  const std::vector<Token> tail(prompt.begin() + 7, prompt.end());
  ASSERT_EQ(chunked.decode(rows(1, 0, head)), DecodeStatus::ok);
  Batch both = rows(0, 0, {'x', 'y'});
  const Batch rest = rows(1, 7, tail);
  both.rows.insert(both.rows.end(), rest.rows.begin(), rest.rows.end());
  ASSERT_EQ(chunked.decode(both), DecodeStatus::ok);
  EXPECT_EQ(best(chunked.logits(static_cast<std::int32_t>(both.rows.size()) - 1)), expected.front());
}

TEST(SimModel, EchoesWhatItIsToldToSay) {
  SimModel model = make_model();
  const std::string text = "the año 2024: héllo 🙂, end";
  const std::vector<Token> said =
      answer(model, 0, "<|im_start|>user\nsay: " + text + "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(detokenize(*tokenizer(), said), text);
}

TEST(SimModel, AWordIsTheRunnerUpToTheEnd) {
  SimOptions options;
  options.answer_tokens = 1;  // every token is the end
  SimModel model = make_model(1, 4096, options);
  ASSERT_EQ(model.decode(rows(0, 0, {'a'})), DecodeStatus::ok);
  std::span<float> logits = model.logits(0);
  ASSERT_EQ(best(logits), SimTokenizer::kImEnd);
  logits[SimTokenizer::kImEnd] = -1000;
  EXPECT_FALSE(tokenizer()->is_end_of_generation(best(logits)));
}

TEST(SimModel, SpendsWhatItCosts) {
  ManualClock clock;
  SimOptions options{.step = milliseconds(1),
                     .decode_row = microseconds(10),
                     .prefill_row = microseconds(2),
                     .spend = [&](Duration d) { clock.advance(d); }};
  SimModel model = make_model(2, 4096, options);
  const TimePoint start = clock.now();
  ASSERT_EQ(model.decode(rows(0, 0, {1, 2, 3})), DecodeStatus::ok);
  EXPECT_EQ(clock.now() - start, milliseconds(1) + microseconds(6));
  ASSERT_EQ(model.decode(rows(0, 3, {4})), DecodeStatus::ok);
  EXPECT_EQ(clock.now() - start, milliseconds(2) + microseconds(16));
}

TEST(SimModel, HangsOnceWhenItIsAskedTo) {
  Duration spent{};
  SimOptions options;
  options.step = options.decode_row = options.prefill_row = Duration::zero();
  options.spend = [&spent](Duration time) { spent += time; };
  SimModel model = make_model(4, 4096, options);
  answer(model, 0, "<|im_start|>user\nhang: 7<|im_end|>\n<|im_start|>assistant\n", 5);
  EXPECT_EQ(spent, seconds(7));
  answer(model, 1, "<|im_start|>user\nhang: forever<|im_end|>\n<|im_start|>assistant\n", 5);
  answer(model, 2, kHello, 5);
  EXPECT_EQ(spent, seconds(7));
}

TEST(SimModel, AFailureChangesNothing) {
  SimModel model = make_model();
  ASSERT_EQ(model.decode(rows(0, 0, {1, 2, 3})), DecodeStatus::ok);
  model.fail_decode(2, DecodeStatus::failed);
  ASSERT_EQ(model.decode(rows(0, 3, {4})), DecodeStatus::ok);
  EXPECT_EQ(model.decode(rows(0, 4, {5})), DecodeStatus::failed);
  EXPECT_EQ(model.history(SlotId{0}).size(), 4u);
  EXPECT_EQ(model.decode(rows(0, 4, {5})), DecodeStatus::ok);
}

TEST(SimModel, CellsRunOut) {
  SimModel streams = make_model(2, 8);
  EXPECT_EQ(streams.shape().cells_per_slot, 4);
  ASSERT_EQ(streams.decode(rows(0, 0, {1, 2, 3, 4})), DecodeStatus::ok);
  EXPECT_EQ(streams.decode(rows(0, 4, {5})), DecodeStatus::no_room);
  EXPECT_EQ(streams.cells_used(), 4);

  SimModel pool(tokenizer(), {.slots = 2, .cells = 8, .unified = true, .rows_max = 64}, {});
  ASSERT_EQ(pool.decode(rows(0, 0, {1, 2, 3, 4, 5, 6})), DecodeStatus::ok);
  EXPECT_EQ(pool.decode(rows(1, 0, {1, 2, 3})), DecodeStatus::no_room);
  pool.trim(SlotId{0}, 5);
  EXPECT_EQ(pool.decode(rows(1, 0, {1, 2, 3})), DecodeStatus::ok);
}

TEST(SimModel, ASnapshotGoesOnInAnyEmptySlot) {
  SimModel model = make_model();
  ASSERT_EQ(model.decode(rows(0, 0, {1, 2, 3, 4})), DecodeStatus::ok);
  const KvSnapshotPtr snapshot = model.snapshot(SlotId{0}, 4);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->tokens(), 4);
  model.trim(SlotId{0}, 0);
  ASSERT_TRUE(model.restore(SlotId{1}, *snapshot, 4));
  ASSERT_TRUE(model.restore(SlotId{0}, *snapshot, 2));
  EXPECT_EQ(model.cells_used(), 6);
  ASSERT_EQ(model.decode(rows(0, 2, {3, 4, 5})), DecodeStatus::ok);
  const std::vector<float> recomputed(model.logits(2).begin(), model.logits(2).end());
  ASSERT_EQ(model.decode(rows(1, 4, {5})), DecodeStatus::ok);
  EXPECT_TRUE(std::ranges::equal(model.logits(0), recomputed));
}

TEST(SimModel, WhatDoesNotFitIsNotBroughtBack) {
  SimModel pool(tokenizer(), {.slots = 2, .cells = 8, .unified = true, .rows_max = 64}, {});
  ASSERT_EQ(pool.decode(rows(0, 0, {1, 2, 3, 4, 5})), DecodeStatus::ok);
  const KvSnapshotPtr snapshot = pool.snapshot(SlotId{0}, 5);
  EXPECT_FALSE(pool.restore(SlotId{1}, *snapshot, 4));
  EXPECT_TRUE(pool.history(SlotId{1}).empty());
  EXPECT_EQ(pool.cells_used(), 5);
  EXPECT_TRUE(pool.restore(SlotId{1}, *snapshot, 3));
}

TEST(SimModelDeathTest, CatchesWhatWouldGoWrongInARealModel) {
  SimModel model = make_model();
  ASSERT_EQ(model.decode(rows(0, 0, {1, 2})), DecodeStatus::ok);
  EXPECT_DEATH(model.decode(rows(0, 1, {3})), "positions");
  EXPECT_DEATH(model.decode(rows(0, 3, {3})), "positions");
  Batch descending = rows(1, 0, {1});
  descending.rows.push_back({2, 2, SlotId{0}, false});
  EXPECT_DEATH(model.decode(descending), "ascend");
  EXPECT_DEATH(model.logits(0), "output row");
  EXPECT_DEATH(model.trim(SlotId{0}, 3), "trim");
}

TEST(LoadSim, GivesAllParts) {
  const LoadedModel loaded = load_sim({.context = 128});
  auto model = loaded.make({.slots = 2, .rows_max = 16});
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->shape().cells, 256);
  EXPECT_EQ((*model)->shape().vocabulary, loaded.tokenizer->vocabulary());
  EXPECT_EQ(loaded.info.architecture, "sim");
  EXPECT_FALSE(loaded.chat_template->source().empty());
}

}  // namespace
}  // namespace chasqui
