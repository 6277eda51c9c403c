#include "app/capacity.h"

#include <gtest/gtest.h>

#include "model/core_share.h"

namespace chasqui {
namespace {

ModelInfo model(TokenCount trained, std::uint64_t kv_bytes_per_cell) {
  ModelInfo info;
  info.context_trained = trained;
  info.kv_bytes_per_cell = kv_bytes_per_cell;
  return info;
}

constexpr std::uint64_t kGibibyte = 1ull << 30;

ModelConfig unset() {
  ModelConfig config;
  config.slots = 0;
  return config;
}

TEST(Capacity, EachSlotHoldsTheTrainedContextWhereMemoryAllows) {
  const ModelConfig small = with_capacity(unset(), model(32768, 12288), 12 * kGibibyte);
  EXPECT_EQ(small.slots, 16);
  EXPECT_EQ(small.cells, 16 * 32768);
  const ModelConfig middle = with_capacity(unset(), model(32768, 36864), 10 * kGibibyte);
  EXPECT_EQ(middle.slots, 8) << "fewer slots rather than shorter ones";
  EXPECT_EQ(middle.cells, 8 * 32768);
  const ModelConfig large = with_capacity(unset(), model(131072, 131072), 11 * kGibibyte);
  EXPECT_EQ(large.slots, 4) << "but not too few";
  EXPECT_EQ(large.cells, 4 * 22528);
  const ModelConfig tight = with_capacity(unset(), model(131072, 131072), 1 * kGibibyte);
  EXPECT_EQ(tight.slots, 2);
  EXPECT_EQ(tight.cells, 2 * 4096);
}

TEST(Capacity, LeavesFreeWhatIsAskedFor) {
  EXPECT_EQ(kv_bytes_for(10 * kGibibyte, 2 * kGibibyte, false), 4 * kGibibyte);
  EXPECT_EQ(kv_bytes_for(10 * kGibibyte, 2 * kGibibyte, false, kGibibyte), 7 * kGibibyte);
  EXPECT_EQ(kv_bytes_for(2 * kGibibyte, 2 * kGibibyte, true, kGibibyte), 0u);
}

TEST(Capacity, SlotsAreAsLongAsIsSaid) {
  ModelConfig least = unset();
  least.cells_least = 16384;
  const ModelConfig tight = with_capacity(least, model(131072, 131072), 1 * kGibibyte);
  EXPECT_EQ(tight.cells, tight.slots * 16384) << "rather than as little as there is room for";
  ModelConfig pool = unset();
  pool.unified = true;
  pool.cells_per_slot_max = 2000;
  const ModelConfig all = with_capacity(pool, model(32768, 12288), 12 * kGibibyte);
  EXPECT_EQ(all.cells, all.slots * 2000);
}

TEST(Capacity, ASlidingWindowMakesRoomForLongerSlots) {
  ModelInfo gemma = model(131072, 48 * 8192);
  gemma.layers = 48;
  gemma.sliding_window = 1024;
  const ModelConfig full = with_capacity(unset(), gemma, 8 * kGibibyte);
  gemma.window_layers = 40;
  const ModelConfig window = with_capacity(unset(), gemma, 8 * kGibibyte);
  EXPECT_EQ(full.slots, window.slots);
  EXPECT_GT(window.cells, 4 * full.cells);
  ModelConfig whole = unset();
  whole.swa_full = true;
  EXPECT_EQ(with_capacity(whole, gemma, 8 * kGibibyte).cells, full.cells);
}

// Of 100 MiB each, as large hybrid models have; eight of them with draft tokens.
TEST(Capacity, StatesAndThoseThatDraftTokensWantTakeRoomToo) {
  ModelInfo hybrid = model(8192, 16384);
  const ModelConfig positions = with_capacity(unset(), hybrid, 2 * kGibibyte);
  EXPECT_EQ(positions.slots, 16);
  hybrid.state_bytes_per_slot = 100ull << 20;
  const ModelConfig states = with_capacity(unset(), hybrid, 2 * kGibibyte);
  EXPECT_EQ(states.slots, 8);
  EXPECT_EQ(states.cells, 8 * 8192);
  ModelConfig drafts = unset();
  drafts.rollback = 7;
  const ModelConfig few = with_capacity(drafts, hybrid, 2 * kGibibyte);
  EXPECT_EQ(few.slots, 2);
  EXPECT_EQ(few.cells, 2 * 8192);
  const ModelConfig shorter = with_capacity(drafts, hybrid, (900ull << 20));
  EXPECT_EQ(shorter.slots, 1);
  EXPECT_EQ(shorter.cells, 6400) << "what its states leave";
  drafts.slots = 4;
  EXPECT_EQ(with_capacity(drafts, hybrid, 2 * kGibibyte).cells, 4 * 4096) << "what was asked for is kept";
}

TEST(Capacity, SmallerFormatsMakeRoomForLongerSlots) {
  const ModelConfig f16 = with_capacity(unset(), model(131072, 131072), 4 * kGibibyte);
  ModelConfig small = unset();
  small.kv_keys = small.kv_values = KvType::q4_0;
  ModelConfig large = unset();
  large.kv_keys = large.kv_values = KvType::f32;
  EXPECT_EQ(with_capacity(small, model(131072, 131072), 4 * kGibibyte).cells, f16.cells * 32 / 9);
  EXPECT_EQ(with_capacity(large, model(131072, 131072), 4 * kGibibyte).cells, f16.cells / 2);
}

TEST(Capacity, SlotsThatTheUserAskedForAreAsLongAsMemoryAllows) {
  ModelConfig config = unset();
  config.slots = 64;
  EXPECT_EQ(with_capacity(config, model(32768, 12288), 6 * kGibibyte).cells, 64 * 8192);
  EXPECT_EQ(with_capacity(config, model(32768, 12288), 0).cells, 64 * 4096) << "what was asked for is kept";
}

TEST(Capacity, HalfOfWhatTheWeightsLeaveIsForTheCache) {
  EXPECT_EQ(kv_bytes_for(20 * kGibibyte, 4 * kGibibyte, false), 8 * kGibibyte);
  EXPECT_EQ(kv_bytes_for(20 * kGibibyte, 4 * kGibibyte, true), 2 * kGibibyte) << "committed at once";
  EXPECT_EQ(kv_bytes_for(2 * kGibibyte, 4 * kGibibyte, false), 0u);
}

TEST(Capacity, HowManyThreadsIsLeftToTheModelWhateverItsSize) {
  for (const std::uint64_t bytes : {3ull << 20, 8ull << 30}) {
    ModelInfo info = model(2048, 2048);
    info.size_bytes = bytes;
    EXPECT_EQ(with_capacity(unset(), info, 12 * kGibibyte).threads, 0);
    EXPECT_EQ(with_capacity(unset(), info, 12 * kGibibyte).threads_batch, 0);
  }
}

TEST(Capacity, EvenAHugeModelGetsOneSlot) {
  EXPECT_EQ(with_capacity(unset(), model(131072, 1u << 30), 12 * kGibibyte).slots, 1);
}

TEST(Capacity, WhatWasAskedForIsKept) {
  ModelConfig config;
  config.slots = 5;
  config.cells = 1000;
  config.threads = 3;
  config.rows_max = 4;
  const ModelConfig got = with_capacity(config, model(2048, 1u << 30), 12 * kGibibyte);
  EXPECT_EQ(got.slots, 5);
  EXPECT_EQ(got.cells, 1000);
  EXPECT_EQ(got.threads, 3);
  EXPECT_EQ(got.rows_max, 5);  // one row for each slot at least
}

TEST(Capacity, AModelThatDoesNotSayItsContextGetsTheDefault) {
  EXPECT_EQ(with_capacity(unset(), model(0, 0), 12 * kGibibyte).cells, 16 * 4096);
}

TEST(Capacity, SlotsOfTheDefaultCanBeSharedByTheWorkers) {
  EXPECT_EQ(with_capacity(unset(), model(2048, 2048), 12 * kGibibyte, 3).slots, 15);
  EXPECT_EQ(with_capacity(unset(), model(2048, 2048), 12 * kGibibyte, 20).slots, 20) << "one for each at least";
  EXPECT_EQ(with_capacity(unset(), model(131072, 1u << 30), 12 * kGibibyte, 2).slots, 2);
}

TEST(WorkersPart, IsAnEvenShareOfSlotsCellsAndCores) {
  ModelConfig whole;
  whole.slots = 8;
  whole.cells = 8192;
  whole.rows_max = 512;
  const auto part = part_of_worker(whole, 4, 9);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->slots, 2);
  EXPECT_EQ(part->cells, 2048);
  EXPECT_EQ(part->threads, 2);
  EXPECT_EQ(part->rows_max, 512) << "a batch is as large as ever";
  EXPECT_EQ(part_of_worker(whole, 8, 4)->threads, 1) << "more workers than cores";
  EXPECT_EQ(part_of_worker(whole, 2, 12, 3)->threads, 2) << "of three models";
  EXPECT_EQ(part_of_worker(whole, 1, 12, 3)->threads, 4) << "of three models";
}

TEST(WorkersPart, ThreadsThatWereAskedForAreThoseOfEachWorker) {
  ModelConfig whole;
  whole.slots = 2;
  whole.cells = 512;
  whole.threads = 3;
  EXPECT_EQ(part_of_worker(whole, 2, 4)->threads, 3);
}

TEST(WorkersPart, OfOneWorkerIsEverything) {
  ModelConfig whole;
  whole.slots = 5;
  whole.cells = 1000;
  const auto part = part_of_worker(whole, 1, 4);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->slots, 5);
  EXPECT_EQ(part->cells, 1000);
  EXPECT_EQ(part->threads, 0) << "one for each core";
}

TEST(WorkersPart, SlotsThatDoNotDivideAreRefusedByTheNamesOfBothFlags) {
  ModelConfig whole;
  whole.slots = 5;
  whole.cells = 5000;
  const auto part = part_of_worker(whole, 2, 4);
  ASSERT_FALSE(part.has_value());
  EXPECT_NE(part.error().message.find("--parallel 5"), std::string::npos) << part.error().message;
  EXPECT_NE(part.error().message.find("--workers 2"), std::string::npos) << part.error().message;
  whole.slots = 1;
  EXPECT_FALSE(part_of_worker(whole, 2, 4).has_value()) << "a worker without a slot";
}

TEST(WorkersPart, TooFewCellsForTheSlotsAreRefusedByTheNamesOfBothFlags) {
  ModelConfig whole;
  whole.slots = 16;
  whole.cells = 8;
  for (const int workers : {1, 2}) {
    const auto part = part_of_worker(whole, workers, 4);
    ASSERT_FALSE(part.has_value());
    EXPECT_NE(part.error().message.find("--ctx-size 8"), std::string::npos) << part.error().message;
    EXPECT_NE(part.error().message.find("--parallel"), std::string::npos) << part.error().message;
  }
}

TEST(Capacity, ThreadsAreLeftOpenWhereTheCoresAreShared) {
  ModelConfig whole = unset();
  whole.slots = 4;
  whole.cells = 4096;
  EXPECT_EQ(part_of_worker(whole, 2, 8, 2)->threads, 2);
  whole.cores = std::make_shared<CoreShare>(8, 4);
  EXPECT_EQ(part_of_worker(whole, 2, 8, 2)->threads, 0);
}

}  // namespace
}  // namespace chasqui
