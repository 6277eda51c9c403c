#include "publish/block_hash.h"

#include <vector>

#include <gtest/gtest.h>

namespace chasqui::publish {
namespace {

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
