#include "model/llama_model.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "model/fake_stepping_clock.h"
#include "model/llama_tokenizer.h"
#include "model/test_rows.h"
#include "model/test_weights.h"

namespace chasqui {
namespace {

constexpr std::string_view kText =
    "The runner waits at the relay station until the message comes, then carries it to the next one.";

std::unique_ptr<LlamaModel> make(ModelConfig config = {}) {
  if (config.cells == 0) config.cells = 512 * config.slots;
  config.threads = 1;  // tests run beside each other
  auto model = LlamaModel::make(test_weights(), config);
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

std::vector<Token> tokens(std::string_view text = kText) {
  return LlamaTokenizer(test_weights()).tokenize(text, AddSpecial::yes, ParseSpecial::no);
}

TEST(LlamaModel, ShapeSaysWhatLibllamaMade) {
  auto model = make({.slots = 3, .cells = 1000, .rows_max = 64});
  EXPECT_EQ(model->shape().cells_per_slot, 512);  // 333 rounded up to whole blocks of 256
  EXPECT_EQ(model->shape().cells, 3 * 512);
  EXPECT_EQ(model->shape().rows_max, 64);
  EXPECT_EQ(model->shape().outputs_max, 3);
  auto unified = make({.slots = 3, .cells = 1000, .unified = true, .rows_max = 64});
  EXPECT_EQ(unified->shape().cells, 1024);
  EXPECT_EQ(unified->shape().cells_per_slot, 1024);
}

TEST(LlamaModel, PrefillEqualsOneByOne) {
  auto model = make({.slots = 2});
  const std::vector<Token> prompt = tokens();
  const auto length = static_cast<TokenCount>(prompt.size());
  const std::vector<float> at_once = run(*model, 0, 0, prompt);
  std::vector<float> singly;
  for (TokenCount i = 0; i < length; ++i) singly = run(*model, 1, i, std::span(prompt).subspan(i, 1));
  EXPECT_LT(difference(at_once, singly), kClose);
  EXPECT_EQ(greedy(*model, 0, length, at_once, 12), greedy(*model, 1, length, singly, 12));
}

TEST(LlamaModel, TrimmingForgets) {
  auto model = make({.slots = 2});
  const std::vector<Token> prompt = tokens();
  const auto length = static_cast<TokenCount>(prompt.size());
  const std::vector<float> first = run(*model, 1, 0, prompt);
  greedy(*model, 1, length, first, 5);
  model->trim(SlotId{1}, length / 2);
  EXPECT_LT(difference(first, run(*model, 1, length / 2, std::span(prompt).subspan(length / 2))), kClose);
  model->trim(SlotId{1}, 0);
  EXPECT_LT(difference(first, run(*model, 1, 0, prompt)), kClose);
}

TEST(LlamaModel, AMovedSlotGoesOnElsewhereAndLeavesNothingBehind) {
  for (const bool unified : {false, true}) {
    auto model = make({.slots = 4, .unified = unified});
    EXPECT_EQ(model->shape().dense_slots, !unified);
    const std::vector<Token> prompt = tokens();
    const auto length = static_cast<TokenCount>(prompt.size());
    const std::vector<float> stays = run(*model, 0, 0, prompt);
    const std::vector<float> moves = run(*model, 3, 0, prompt);
    model->move(SlotId{3}, SlotId{1});
    EXPECT_EQ(greedy(*model, 1, length, moves, 12), greedy(*model, 0, length, stays, 12));
    // The slot that was left is empty, and may be used at once.
    EXPECT_LT(difference(moves, run(*model, 3, 0, prompt)), kClose);
  }
}

// All at once or in two parts: where the keys are turned to is the same, and the other slot knows nothing of it.
TEST(LlamaModel, AShiftTurnsWhatIsLeftToItsNewPositions) {
  for (const bool unified : {false, true}) {
    auto model = make({.slots = 3, .unified = unified});
    ASSERT_TRUE(model->shape().shifts);
    const std::vector<Token> prompt = tokens();
    const auto length = static_cast<TokenCount>(prompt.size());
    const std::span<const Token> next(&prompt.back(), 1);
    for (const std::int32_t slot : {0, 1, 2}) run(*model, slot, 0, prompt);
    model->shift(SlotId{0}, 2, 10);
    const std::vector<float> at_once = run(*model, 0, length - 8, next);
    model->shift(SlotId{1}, 2, 7);
    run(*model, 1, length - 5, next);
    model->trim(SlotId{1}, length - 5);
    model->shift(SlotId{1}, 2, 5);
    EXPECT_LT(difference(at_once, run(*model, 1, length - 8, next)), kClose);
    const std::vector<float> whole = run(*model, 2, length, next);
    EXPECT_GT(difference(at_once, whole), 2 * kClose) << "something is gone";
    auto other = make({.slots = 3, .unified = unified});
    run(*other, 2, 0, prompt);
    EXPECT_LT(difference(whole, run(*other, 2, length, next)), kClose);
  }
}

TEST(LlamaModel, TheDecodeThatTurnsKeysIsNotCut) {
  auto model = make({.slots = 1});
  const std::vector<Token> prompt = tokens();
  const auto length = static_cast<TokenCount>(prompt.size());
  run(*model, 0, 0, prompt);
  model->shift(SlotId{0}, 0, 4);
  model->request_abort();
  Batch batch;
  add_rows(batch, 0, length - 4, std::span(prompt).last(1));
  EXPECT_EQ(model->decode(batch), DecodeStatus::ok);
  batch.rows.front().position = length - 3;
  EXPECT_EQ(model->decode(batch), DecodeStatus::aborted);
}

// Slots that are not neighbours are computed one after the other: the second one has no row yet when the first is cut.
TEST(LlamaModel, AStepThatWasCutLeavesAnEmptySlotAsItWas) {
  auto model = make({.slots = 4});
  std::vector<Token> prompt;  // attention takes its cells in several tiles, and others where it begins elsewhere
  for (Token i = 0; i < 200; ++i) prompt.push_back(300 + i * 37 % 600);
  const std::vector<float> first = run(*model, 3, 0, prompt);
  run(*model, 0, 0, prompt);
  Batch both;
  add_rows(both, 0, 200, std::span(prompt).last(1));
  add_rows(both, 2, 0, prompt);
  model->request_abort();
  EXPECT_EQ(model->decode(both), DecodeStatus::aborted);
  model->clear_abort();
  EXPECT_EQ(run(*model, 2, 0, prompt), first) << "its cells do not begin with the first one";
}

TEST(LlamaModel, SlotsDoNotMix) {
  for (bool unified : {false, true}) {
    auto model = make({.slots = 3, .unified = unified});
    const std::vector<Token> one = tokens("The first of two texts.");
    const std::vector<Token> two = tokens("Something else, and longer than the other text was.");
    const std::vector<float> alone_one = run(*model, 0, 0, one);
    const std::vector<float> alone_two = run(*model, 1, 0, two);
    model->trim(SlotId{0}, 0);
    model->trim(SlotId{1}, 0);

    Batch batch;
    add_rows(batch, 0, 0, one);
    add_rows(batch, 1, 0, two);
    ASSERT_EQ(model->decode(batch), DecodeStatus::ok);
    EXPECT_LT(difference(alone_one, copy(model->logits(static_cast<std::int32_t>(one.size()) - 1))), kClose);
    const auto last = static_cast<std::int32_t>(batch.rows.size()) - 1;
    EXPECT_LT(difference(alone_two, copy(model->logits(last))), kClose);
  }
}

TEST(LlamaModel, LayoutsAgree) {
  auto streams = make({.slots = 2});
  auto unified = make({.slots = 2, .unified = true});
  const std::vector<Token> prompt = tokens();
  EXPECT_LT(difference(run(*streams, 1, 0, prompt), run(*unified, 1, 0, prompt)), kClose);
}

TEST(LlamaModel, OtherKvTypesWork) {
  auto plain = make({.slots = 1});
  auto small =
      make({.slots = 1, .flash_attention = FlashAttention::on, .kv_keys = KvType::q8_0, .kv_values = KvType::q8_0});
  const std::vector<Token> prompt = tokens();
  EXPECT_LT(difference(run(*plain, 0, 0, prompt), run(*small, 0, 0, prompt)), 0.1);
}

TEST(LlamaModel, TwoThreadsComputeTheSameAsOne) {
  const std::vector<Token> prompt = tokens("Two threads.");
  auto one = make({.slots = 1});
  EXPECT_EQ(one->compute_stats().threads, 1);
  auto two = LlamaModel::make(test_weights(), {.slots = 1, .cells = 256, .threads = 2, .warm_up = false});
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_LT(difference(run(*one, 0, 0, prompt), run(**two, 0, 0, prompt)), kClose);
  EXPECT_EQ((*two)->compute_stats().threads, 2);
}

TEST(LlamaModel, ADecodeThatIsCutIsComputedAgain) {
  for (const bool unified : {false, true}) {
    auto expected = make({.slots = 2, .unified = unified});
    SteppingClock clock;
    const ModelConfig config{.slots = 2, .cells = 512, .unified = unified, .threads = 2, .warm_up = false};
    auto made = LlamaModel::make(test_weights(), config, &clock);
    ASSERT_TRUE(made) << made.error().message;
    LlamaModel& model = **made;
    const std::vector<Token> prompt = tokens();
    const auto length = static_cast<TokenCount>(prompt.size());
    for (const std::int32_t slot : {0, 1}) {
      EXPECT_LT(difference(run(*expected, slot, 0, prompt), run(model, slot, 0, prompt)), kClose);
    }
    // Both slots in one batch, which the next operation ends: it is a second late.
    Batch batch;
    add_rows(batch, 0, length, prompt);
    add_rows(batch, 1, length, prompt);
    EXPECT_EQ(model.compute_stats().cuts, 0);
    clock.step = seconds(1);
    ASSERT_EQ(model.decode(batch), DecodeStatus::ok);
    EXPECT_EQ(model.compute_stats().cuts, 1);
    EXPECT_EQ(model.compute_stats().threads, 1);
    ASSERT_EQ(expected->decode(batch), DecodeStatus::ok);
    for (const std::int32_t row : {length - 1, 2 * length - 1}) {
      EXPECT_LT(difference(copy(expected->logits(row)), copy(model.logits(row))), kClose);
    }
    EXPECT_LT(difference(run(*expected, 1, 2 * length, prompt), run(model, 1, 2 * length, prompt)), kClose);
  }
}

// Strangled threads must not keep a server from starting.
TEST(LlamaModel, TheFirstDecodeOfAllIsCut) {
  SteppingClock clock;
  clock.step = seconds(1);
  auto made = LlamaModel::make(test_weights(), {.slots = 1, .cells = 512, .threads = 2, .warm_up = true}, &clock);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_GT((*made)->compute_stats().cuts, 0u);
}

TEST(LlamaModel, ARealAbortWinsOverACut) {
  SteppingClock clock;
  auto made = LlamaModel::make(test_weights(), {.slots = 1, .cells = 512, .threads = 2, .warm_up = false}, &clock);
  ASSERT_TRUE(made) << made.error().message;
  const std::vector<Token> prompt = tokens();
  run(**made, 0, 0, prompt);
  clock.step = seconds(1);
  (*made)->request_abort();
  Batch batch;
  add_rows(batch, 0, static_cast<TokenCount>(prompt.size()), prompt);
  EXPECT_EQ((*made)->decode(batch), DecodeStatus::aborted);
  EXPECT_EQ((*made)->compute_stats().cuts, 0);
  (*made)->clear_abort();
  EXPECT_EQ((*made)->decode(batch), DecodeStatus::ok);
}

TEST(LlamaModel, FixedThreadsStayAsTheyAre) {
  SteppingClock clock;
  const ModelConfig config{
      .slots = 1, .cells = 512, .threads = 1, .threads_batch = 2, .adapt_threads = false, .warm_up = false};
  auto made = LlamaModel::make(test_weights(), config, &clock);
  ASSERT_TRUE(made) << made.error().message;
  const std::vector<Token> prompt = tokens();
  run(**made, 0, 0, prompt);
  EXPECT_EQ((*made)->compute_stats().threads, 2);
  clock.step = seconds(1);
  const auto length = static_cast<TokenCount>(prompt.size());
  run(**made, 0, length, std::span(prompt).first(1));
  EXPECT_EQ((*made)->compute_stats().threads, 1);
  run(**made, 0, length + 1, prompt);
  EXPECT_EQ((*made)->compute_stats().threads, 2);
  EXPECT_EQ((*made)->compute_stats().cuts, 0);
}

TEST(LlamaModel, WarmUpLeavesNothingBehind) {
  auto expected = make({.slots = 1});
  auto warm = LlamaModel::make(test_weights(), {.slots = 1, .cells = 512, .threads = 2});
  ASSERT_TRUE(warm) << warm.error().message;
  const std::vector<Token> prompt = tokens();
  EXPECT_LT(difference(run(*expected, 0, 0, prompt), run(**warm, 0, 0, prompt)), kClose);
}

// With a clock that stands still nothing takes too long, whatever else the machine does.
ThreadFigures measured_at_start(ThreadFigures known) {
  static const ManualClock clock;
  ThreadFigures measured;
  ModelConfig config{.slots = 1, .cells = 512, .threads = 2};
  config.thread_figures = std::move(known);
  config.on_threads_measured = [&measured](const ThreadFigures& figures) { measured = figures; };
  auto model = LlamaModel::make(test_weights(), config, &clock);
  EXPECT_TRUE(model) << model.error().message;
  return measured;
}

TEST(LlamaModel, AStartSaysWhatItMeasuredOfAllNumbersOfThreads) {
  const ThreadFigures all = {{1, 1, {}}, {1, 2, {}}, {8, 1, {}}, {8, 2, {}}};
  EXPECT_EQ(measured_at_start({}), all);
}

TEST(LlamaModel, WhatWasMeasuredBeforeIsNotMeasuredAgain) {
  const ThreadFigures known = {{1, 1, milliseconds(2)}, {1, 2, milliseconds(1)}};
  EXPECT_EQ(measured_at_start(known), ThreadFigures());
}

TEST(LlamaModel, FiguresOfNumbersThatAreNoChoiceHereAreMeasuredAgain) {
  for (const ThreadFigure odd : {ThreadFigure{1, 4, milliseconds(1)}, ThreadFigure{0, 1, milliseconds(1)},
                                 ThreadFigure{1 << 20, 1, milliseconds(1)}, ThreadFigure{1, 1, milliseconds(-1)}}) {
    EXPECT_FALSE(measured_at_start({{1, 1, milliseconds(2)}, odd}).empty());
  }
}

TEST(LlamaModel, NoRoomChangesNothing) {
  auto model = make({.slots = 2, .cells = 512, .rows_max = 512});
  const std::vector<Token> prompt = tokens();
  const auto length = static_cast<TokenCount>(prompt.size());
  const std::vector<float> expected = run(*model, 0, 0, prompt);
  greedy(*model, 0, length, expected, 1);
  model->trim(SlotId{0}, length);
  const std::vector<Token> too_much(300, prompt.front());
  Batch batch;
  add_rows(batch, 0, length, too_much);
  EXPECT_EQ(model->decode(batch), DecodeStatus::no_room);
  model->trim(SlotId{0}, length - 1);
  EXPECT_LT(difference(expected, run(*model, 0, length - 1, std::span(prompt).last(1))), kClose);
}

TEST(LlamaModel, AbortedDecodesChangeNothing) {
  auto model = make({.slots = 2, .rows_max = 512});
  const std::vector<Token> prompt = tokens();
  const auto length = static_cast<TokenCount>(prompt.size());
  run(*model, 0, 0, prompt);
  run(*model, 1, 0, prompt);
  // Unequal parts of two streams take two passes; the abort comes at any time before, between, within or after them.
  Batch batch;
  add_rows(batch, 0, length, std::vector<Token>(60, prompt.front()));
  add_rows(batch, 1, length, std::vector<Token>(180, prompt.back()));
  const auto undo = [&] {
    model->trim(SlotId{0}, length);
    model->trim(SlotId{1}, length);
  };
  const RealClock clock;
  const TimePoint begin = clock.now();
  ASSERT_EQ(model->decode(batch), DecodeStatus::ok);
  const Duration whole = clock.now() - begin;
  undo();
  constexpr int kTimes = 16;
  int aborted = 0;
  for (int i = 0; i < kTimes; ++i) {
    std::thread other([&, end = clock.now() + whole * i / kTimes] {
      while (clock.now() < end) std::this_thread::yield();
      model->request_abort();
    });
    const DecodeStatus status = model->decode(batch);
    other.join();
    model->clear_abort();
    aborted += status == DecodeStatus::aborted ? 1 : 0;
    if (status == DecodeStatus::ok) undo();
    ASSERT_TRUE(status == DecodeStatus::ok || status == DecodeStatus::aborted);
  }
  EXPECT_GT(aborted, 0);
  // libllama refuses positions that do not continue a slot, so this shows where both slots stand.
  const std::vector<float> zero = run(*model, 0, length, std::span(prompt).first(1));
  EXPECT_LT(difference(zero, run(*model, 1, length, std::span(prompt).first(1))), kClose);
}

TEST(LlamaModel, PositionsThatDoNotContinueFail) {
  auto model = make({.slots = 1});
  const std::vector<Token> prompt = tokens();
  run(*model, 0, 0, prompt);
  Batch batch;
  add_rows(batch, 0, static_cast<TokenCount>(prompt.size()) + 5, prompt);
  EXPECT_EQ(model->decode(batch), DecodeStatus::failed);
  run(*model, 0, static_cast<TokenCount>(prompt.size()), prompt);
}

TEST(LlamaModel, RefusesConfigurationsThatCannotWork) {
  const auto field = [](ModelConfig config) {
    auto model = LlamaModel::make(test_weights(), config);
    return model ? std::string("none") : model.error().field;
  };
  EXPECT_EQ(field({.slots = 0, .cells = 512}), "slots");
  EXPECT_EQ(field({.slots = 257, .cells = 512}), "slots");
  EXPECT_EQ(field({.slots = 8, .cells = 512, .rows_max = 4}), "rows_max");
  EXPECT_EQ(field({.slots = 1, .cells = -1}), "cells");
  EXPECT_EQ(field({.slots = 1, .cells = 512, .polling = 101}), "polling");
}

TEST(LlamaModelDeathTest, CatchesOurMistakes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto model = make({.slots = 2, .rows_max = 16});
  const std::vector<Token> prompt = tokens();
  run(*model, 0, 0, std::span(prompt).first(4));
  EXPECT_DEATH(model->logits(0), "output row");
  EXPECT_DEATH(model->trim(SlotId{2}, 0), "slot");
  EXPECT_DEATH(model->decode(Batch()), "empty");
}

// Each row once, and what they wrote is there when the call returns.
TEST(LlamaModel, RowsAreSharedOutToTheComputeThreads) {
  auto model = LlamaModel::make(test_weights(),
                                {.slots = 1, .cells = 256, .threads = 2, .adapt_threads = false, .warm_up = false});
  ASSERT_TRUE(model) << model.error().message;
  struct Count final : RowJob {
    std::vector<int> times = std::vector<int>(1000);
    std::vector<std::size_t> threads = std::vector<std::size_t>(1000);
    void run(std::size_t row, std::size_t thread) override {
      ++times[row];
      threads[row] = thread;
    }
  };
  ASSERT_EQ((*model)->row_threads(), 2u);
  for (int round = 0; round < 20; ++round) {
    Count count;
    (*model)->for_each_row(count.times.size(), count);
    EXPECT_EQ(std::ranges::count(count.times, 1), 1000);
    EXPECT_LT(*std::ranges::max_element(count.threads), 2u);
  }
}

}  // namespace
}  // namespace chasqui
