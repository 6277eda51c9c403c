#include "model/window_layers.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(WindowLayers, AreAsTheFileSaysOrAsTheArchitectureIsKnown) {
  EXPECT_EQ(window_layers("gemma3", 48, std::nullopt), 40);
  EXPECT_EQ(window_layers("gemma2", 26, std::nullopt), 13);
  EXPECT_EQ(window_layers("gemma3", 48, 4), 36) << "the file knows better";
  EXPECT_EQ(window_layers("anything", 48, 0), 48) << "all of them";
  EXPECT_EQ(window_layers("anything", 48, std::nullopt), 0);
  EXPECT_EQ(window_layers("anything", 48, -3), 0) << "nonsense";
}

TEST(WindowLayers, HaveCellsForTheWindowAndABatchOnly) {
  const KvSize gemma3 = kv_size(48 * 8192, 48, 40, 1024, 512);
  EXPECT_EQ(gemma3.window_cells, 1536u);
  EXPECT_EQ(gemma3.of(32768), 32768u * 8 * 8192 + 1536u * 40 * 8192);
  EXPECT_EQ(gemma3.of(1000), 1000u * 48 * 8192) << "a short slot holds all";
  for (const std::uint64_t cells : {100u, 1536u, 5000u, 100'000u}) EXPECT_EQ(gemma3.cells_in(gemma3.of(cells)), cells);
  const KvSize plain = kv_size(12288, 24, 0, 0, 512);
  EXPECT_EQ(plain.of(1000), 12'288'000u);
  EXPECT_EQ(plain.cells_in(12'288'000), 1000u);
}

}  // namespace
}  // namespace chasqui
