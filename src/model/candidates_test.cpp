#include "model/candidates.h"

#include <algorithm>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Few distinct values, so that ties are common; now and then something that is no number.
std::vector<float> noise(std::size_t size, unsigned seed, int distinct) {
  std::mt19937 generator(seed);
  std::vector<float> row(size);
  for (float& value : row) value = static_cast<float>(static_cast<int>(generator() % static_cast<unsigned>(distinct)));
  for (int i = 0; i < 20; ++i) row[generator() % size] = generator() % 2 == 0 ? kNan : -kInfinity;
  return row;
}

std::vector<Token> sorted_by_likelihood(const std::vector<float>& row) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] > -kInfinity) tokens.push_back(static_cast<Token>(i));
  }
  std::ranges::stable_sort(tokens, std::greater<>(), [&](Token t) { return row[static_cast<std::size_t>(t)]; });
  return tokens;
}

std::vector<Token> tokens_of(std::vector<Candidate> candidates) {
  std::ranges::sort(candidates, more_likely);
  std::vector<Token> tokens;
  for (const Candidate& c : candidates) tokens.push_back(c.token);
  return tokens;
}

TEST(Candidates, LargestIsTheFirstOfTheLargest) {
  for (std::size_t size : {1u, 63u, 64u, 65u, 1000u, 4096u}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const std::vector<float> row = noise(size, seed, 50);
      const std::vector<Token> expected = sorted_by_likelihood(row);
      EXPECT_EQ(largest(row), expected.empty() ? -1 : expected.front());
    }
  }
}

TEST(Candidates, LargestOfNothingIsNone) {
  EXPECT_EQ(largest({}), -1);
  EXPECT_EQ(largest(std::vector<float>(200, -kInfinity)), -1);
  EXPECT_EQ(largest(std::vector<float>(200, kNan)), -1);
}

TEST(Candidates, TopKIsTheBeginningOfTheSortedRow) {
  std::vector<Candidate> found;
  for (std::size_t size : {1u, 100u, 1000u, 20000u}) {
    for (std::size_t k : {1u, 2u, 40u, 300u, 999u, 30000u}) {
      const std::vector<float> row = noise(size, static_cast<unsigned>(size + k), 500);
      std::vector<Token> expected = sorted_by_likelihood(row);
      expected.resize(std::min(k, expected.size()));
      gather_top_k(row, k, found);
      EXPECT_EQ(tokens_of(found), expected) << size << " " << k;
    }
  }
}

TEST(Candidates, TopKOfEqualLogitsAreTheLowestIds) {
  std::vector<Candidate> found;
  gather_top_k(std::vector<float>(5000, 1.5f), 3, found);
  EXPECT_EQ(tokens_of(found), (std::vector<Token>{0, 1, 2}));
}

TEST(Candidates, AtLeastKeepsTheOrderOfIds) {
  std::vector<float> row(300, 0.0f);
  row[7] = 2;
  row[70] = kInfinity;
  row[200] = 1;
  row[201] = kNan;
  std::vector<Candidate> found;
  gather_at_least(row, 1.0f, found);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].token, 7);
  EXPECT_EQ(found[1].token, 70);
  EXPECT_EQ(found[1].logit, std::numeric_limits<float>::max());
  EXPECT_EQ(found[2].token, 200);

  row[0] = -kInfinity;
  gather_at_least(row, -kInfinity, found);
  EXPECT_EQ(found.size(), 298u);
}

}  // namespace
}  // namespace chasqui
