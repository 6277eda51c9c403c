#include "sim/distribution.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

Distribution parsed(const std::string& text) {
  Result<Distribution> distribution = Distribution::parse(text, "--prompt");
  EXPECT_TRUE(distribution.has_value()) << text;
  return distribution ? *distribution : Distribution();
}

TEST(Distribution, OneNumberIsAlwaysThatNumber) {
  Random random(1);
  EXPECT_EQ(parsed("8").draw(random), 8);
  EXPECT_EQ(Distribution(5).draw(random), 5);
  EXPECT_EQ(parsed("0").draw(random), 0);
}

TEST(Distribution, ARangeReachesBothEnds) {
  Random random(1);
  const Distribution range = parsed("3-5");
  bool seen[6] = {};
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t value = range.draw(random);
    ASSERT_TRUE(value >= 3 && value <= 5);
    seen[value] = true;
  }
  EXPECT_TRUE(seen[3] && seen[4] && seen[5]);
  EXPECT_EQ(range.largest(), 5);
}

TEST(Distribution, LognormalHasItsMedianAndItsCap) {
  Random random(1);
  const Distribution lognormal = parsed("lognormal:200:0.8:1000");
  int under = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t value = lognormal.draw(random);
    ASSERT_TRUE(value >= 1 && value <= 1000);
    under += value < 200 ? 1 : 0;
  }
  EXPECT_NEAR(under, 10'000, 400);
  EXPECT_EQ(lognormal.largest(), 1000);
}

TEST(Distribution, AMixKeepsItsShares) {
  Random random(1);
  const Distribution mix = parsed("80%10,20%1000-2000");
  int large = 0;
  for (int i = 0; i < 20'000; ++i) large += mix.draw(random) >= 1000 ? 1 : 0;
  EXPECT_NEAR(large, 4000, 300);
}

TEST(Distribution, RefusesWhatItDoesNotUnderstand) {
  for (const char* wrong : {"", "x", "-1", "5-3", "1-", "lognormal:", "lognormal:5", "lognormal:0:1", "%5", "0%5",
                            "lognormal:5:-1", "5,,6", "1 2", "99999999999"}) {
    const Result<Distribution> distribution = Distribution::parse(wrong, "--prompt");
    ASSERT_FALSE(distribution.has_value()) << wrong;
    EXPECT_EQ(distribution.error().field, "--prompt");
  }
}

}  // namespace
}  // namespace chasqui
