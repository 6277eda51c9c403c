#include "sim/percentiles.h"

#include <gtest/gtest.h>

#include "sim/random.h"

namespace chasqui {
namespace {

TEST(Percentiles, AreExactForFewValues) {
  Percentiles values;
  EXPECT_EQ(values.at(0.5), 0);
  for (const int ms : {5, 1, 4, 2, 3}) values.add(milliseconds(ms));
  EXPECT_EQ(values.count(), 5u);
  EXPECT_EQ(values.at(0.5), 3);
  EXPECT_EQ(values.at(0.2), 1);
  EXPECT_EQ(values.at(0.21), 2);
  EXPECT_EQ(values.at(0.95), 5);
  EXPECT_EQ(values.at(1), 5);
  EXPECT_EQ(values.at(0), 1);
  EXPECT_EQ(values.largest(), 5);
  EXPECT_EQ(values.mean(), 3);
  values.add(milliseconds(10));
  EXPECT_EQ(values.at(1), 10) << "more may be added after asking";
}

TEST(Percentiles, AreNearForManyValues) {
  Percentiles values;
  constexpr int kCount = 100'000;
  for (int i = 1; i <= kCount; ++i) values.add(microseconds(100) * ((i * 7919LL) % kCount + 1));
  for (const double share : {0.01, 0.5, 0.95, 0.99, 0.999}) {
    const double exact = share * kCount * 0.1;
    EXPECT_NEAR(values.at(share), exact, exact * 0.005) << share;
  }
  EXPECT_EQ(values.largest(), kCount * 0.1);
  EXPECT_EQ(values.at(1), kCount * 0.1);
}

TEST(Percentiles, TakeAnyDuration) {
  Percentiles values;
  for (int i = 0; i < 10'000; ++i) values.add(Duration::zero());
  EXPECT_EQ(values.at(0.99), 0);
  values.add(std::chrono::hours(24 * 365));
  EXPECT_EQ(values.at(0.5), 0);
  EXPECT_EQ(values.at(1), 365.0 * 24 * 3600 * 1000);
}

}  // namespace
}  // namespace chasqui
