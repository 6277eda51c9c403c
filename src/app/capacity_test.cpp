#include "app/capacity.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

ModelInfo model(TokenCount trained, std::uint64_t kv_bytes_per_cell, std::uint64_t size_bytes) {
  ModelInfo info;
  info.context_trained = trained;
  info.kv_bytes_per_cell = kv_bytes_per_cell;
  info.size_bytes = size_bytes;
  return info;
}

ModelConfig unset() {
  ModelConfig config;
  config.slots = 0;
  return config;
}

TEST(Capacity, ASmallModelGetsItsTrainedContextInEverySlot) {
  const ModelConfig config = with_capacity(unset(), model(2048, 2048, 3 << 20));
  EXPECT_EQ(config.slots, 16);
  EXPECT_EQ(config.cells, 16 * 2048);
  EXPECT_EQ(config.threads, 1);
}

TEST(Capacity, ALargeModelGetsFewerSlotsRatherThanAllTheMemory) {
  const ModelConfig config = with_capacity(unset(), model(131072, 131072, 8ull << 30));
  EXPECT_EQ(config.slots, 4);
  EXPECT_EQ(config.cells, 4 * 4096);
  EXPECT_EQ(config.threads, 0);  // one for each core
}

TEST(Capacity, EvenAHugeModelGetsOneSlot) {
  EXPECT_EQ(with_capacity(unset(), model(131072, 1u << 30, 1ull << 40)).slots, 1);
}

TEST(Capacity, WhatWasAskedForIsKept) {
  ModelConfig config;
  config.slots = 5;
  config.cells = 1000;
  config.threads = 3;
  config.rows_max = 4;
  const ModelConfig got = with_capacity(config, model(2048, 1u << 30, 1));
  EXPECT_EQ(got.slots, 5);
  EXPECT_EQ(got.cells, 1000);
  EXPECT_EQ(got.threads, 3);
  EXPECT_EQ(got.rows_max, 5);  // one row for each slot at least
}

TEST(Capacity, AModelThatDoesNotSayItsContextGetsTheDefault) {
  EXPECT_EQ(with_capacity(unset(), model(0, 0, 0)).cells, 16 * 4096);
}

}  // namespace
}  // namespace chasqui
