#include "sim/step_cost.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

struct Chunk {
  std::int32_t slot;
  TokenCount position;
  std::int32_t rows;
};

Batch batch_of(Batch::Kind kind, const std::vector<Chunk>& chunks) {
  Batch batch;
  batch.kind = kind;
  for (const Chunk& chunk : chunks) {
    const auto first = static_cast<std::int32_t>(batch.rows.size());
    for (std::int32_t i = 0; i < chunk.rows; ++i) {
      batch.rows.push_back({0, chunk.position + i, SlotId{chunk.slot}, false});
    }
    batch.parts.push_back({nullptr, SlotId{chunk.slot}, first, chunk.rows, false});
  }
  return batch;
}

CostConfig simple() {
  CostConfig config;
  config.decode = {100, 10, 1};
  config.prefill = {1000, 20, 0};
  return config;
}

Duration cost(const CostConfig& config, const Batch& batch, TokenCount held = 0) {
  return CostModel(config, 1).cost(batch, held, TimePoint{});
}

TEST(StepCost, ADecodeStepIsAPassRowsAndCells) {
  const Batch dense = batch_of(Batch::Kind::decode, {{0, 4, 1}, {1, 9, 1}});
  EXPECT_EQ(cost(simple(), dense), microseconds(100 + 2 * 10 + 5 + 10));
}

TEST(StepCost, AHoleBetweenSlotsIsOnePassMore) {
  CostModel model(simple(), 1);
  const Batch holes = batch_of(Batch::Kind::decode, {{0, 0, 1}, {1, 0, 1}, {3, 0, 1}, {7, 0, 1}});
  EXPECT_EQ(model.cost(holes, 0, TimePoint{}), microseconds(3 * 100 + 4 * 10 + 4));
  EXPECT_EQ(model.passes(), 3);
}

TEST(StepCost, ChunksOfDifferentLengthsAreCutIntoPasses) {
  CostModel model(simple(), 1);
  model.cost(batch_of(Batch::Kind::prefill, {{0, 0, 5}, {1, 0, 5}}), 0, TimePoint{});
  EXPECT_EQ(model.passes(), 1);
  model.cost(batch_of(Batch::Kind::prefill, {{0, 0, 5}, {1, 0, 50}}), 0, TimePoint{});
  EXPECT_EQ(model.passes(), 2);
  // The middle one is done first and leaves a hole.
  model.cost(batch_of(Batch::Kind::prefill, {{0, 0, 50}, {1, 0, 5}, {2, 0, 50}}), 0, TimePoint{});
  EXPECT_EQ(model.passes(), 3);
}

TEST(StepCost, InOnePoolEveryRowWalksEverybodysCells) {
  CostConfig config = simple();
  config.unified = true;
  const Batch holes = batch_of(Batch::Kind::decode, {{0, 0, 1}, {5, 0, 1}});
  EXPECT_EQ(cost(config, holes, 98), microseconds(100 + 2 * 10 + 2 * 100));
}

TEST(StepCost, NoiseHasItsMedian) {
  CostConfig config = simple();
  config.noise = 0.5;
  CostModel model(config, 1);
  const Batch batch = batch_of(Batch::Kind::decode, {{0, 0, 1}});
  int under = 0;
  for (int i = 0; i < 10'000; ++i) under += model.cost(batch, 0, TimePoint{}) < microseconds(111) ? 1 : 0;
  EXPECT_NEAR(under, 5000, 250);
}

TEST(StepCost, ANeighbourComesAndGoes) {
  CostConfig config = simple();
  config.neighbour_factor = 10;
  config.neighbour_every_s = 30;
  config.neighbour_stays_s = 10;
  CostModel model(config, 1);
  const Batch batch = batch_of(Batch::Kind::decode, {{0, 0, 1}});
  int slow = 0;
  for (int s = 0; s < 100'000; ++s) {
    const Duration took = model.cost(batch, 0, TimePoint{} + seconds(s));
    EXPECT_TRUE(took == microseconds(111) || took == microseconds(1110));
    slow += took == microseconds(1110) ? 1 : 0;
  }
  EXPECT_NEAR(slow, 25'000, 2500) << "ten seconds of each forty";
}

}  // namespace
}  // namespace chasqui
