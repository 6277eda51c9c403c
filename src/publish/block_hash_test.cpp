#include "publish/block_hash.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui::publish {
namespace {

// Bytes 0 to 15 as the key, and the first bytes of these, as OpenSSL computes them.
TEST(BlockHash, IsSipHash) {
  constexpr BlockHasher::Secret kSecret{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  constexpr std::array<std::uint64_t, 2> kWords{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  EXPECT_EQ(siphash(kSecret, {}), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(siphash(kSecret, std::span(kWords).first(1)), 0x93f5f5799a932462U);
  EXPECT_EQ(siphash(kSecret, kWords), 0x3f2acc7f57c29bdbU);
}

TEST(BlockHash, DependsOnAllThatNamesABlock) {
  const BlockHasher hash({1, 2});
  const std::vector<Token> tokens(64, 5);
  const BlockHash first = hash(0, 0, tokens);
  EXPECT_EQ(first, hash(0, 0, tokens));
  EXPECT_NE(first, hash(1, 0, tokens));
  EXPECT_NE(first, hash(0, 1, tokens));
  EXPECT_NE(first, BlockHasher({1, 3})(0, 0, tokens));
  EXPECT_NE(first, BlockHasher({3, 2})(0, 0, tokens));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::vector<Token> other = tokens;
    ++other[i];
    EXPECT_NE(first, hash(0, 0, other)) << i;
  }
}

}  // namespace
}  // namespace chasqui::publish
