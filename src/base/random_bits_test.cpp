#include "base/random_bits.h"

#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(RandomBits, ComeOnceInAllThreads) {
  std::set<std::uint64_t> mine;
  std::set<std::uint64_t> theirs;
  std::thread other([&theirs] {
    for (int i = 0; i < 1000; ++i) theirs.insert(RandomBits{}());
  });
  for (int i = 0; i < 1000; ++i) mine.insert(RandomBits{}());
  other.join();
  mine.merge(theirs);
  EXPECT_EQ(mine.size(), 2000u);
}

TEST(RandomBits, EveryBitIsSetHalfOfTheTime) {
  int set[64] = {};
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t bits = RandomBits{}();
    for (int bit = 0; bit < 64; ++bit) set[bit] += static_cast<int>(bits >> bit & 1);
  }
  for (const int count : set) EXPECT_NEAR(count, 5000, 500);  // ten standard deviations
}

}  // namespace
}  // namespace chasqui
