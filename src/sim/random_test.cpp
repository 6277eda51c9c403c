#include "sim/random.h"

#include <cmath>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(Random, GivesTheSameNumbersForEver) {
  Random random(1);
  const std::uint64_t first = random.bits();
  EXPECT_EQ(Random(1).bits(), first);
  EXPECT_NE(Random(2).bits(), first);
  EXPECT_NE(Random(1, 1).bits(), first) << "streams of one seed differ";
}

TEST(Random, StaysWithinItsBounds) {
  Random random(7);
  bool low = false;
  bool high = false;
  for (int i = 0; i < 10'000; ++i) {
    const double unit = random.unit();
    ASSERT_TRUE(unit >= 0 && unit < 1);
    const std::int64_t value = random.between(-3, 3);
    ASSERT_TRUE(value >= -3 && value <= 3);
    low |= value == -3;
    high |= value == 3;
    ASSERT_GE(random.exponential(1), 0);
    ASSERT_FALSE(random.chance(0));
    ASSERT_TRUE(random.chance(1));
  }
  EXPECT_TRUE(low && high);
}

TEST(Random, HasTheMomentsOfItsDistributions) {
  Random random(3);
  constexpr int kCount = 200'000;
  double exponential = 0;
  double normal = 0;
  double squares = 0;
  int under = 0;
  for (int i = 0; i < kCount; ++i) {
    exponential += random.exponential(5);
    const double value = random.normal();
    normal += value;
    squares += value * value;
    under += random.lognormal(100, 0.7) < 100 ? 1 : 0;
  }
  EXPECT_NEAR(exponential / kCount, 5, 0.1);
  EXPECT_NEAR(normal / kCount, 0, 0.02);
  EXPECT_NEAR(squares / kCount, 1, 0.02);
  EXPECT_NEAR(static_cast<double>(under) / kCount, 0.5, 0.01) << "the median is the median";
}

}  // namespace
}  // namespace chasqui
