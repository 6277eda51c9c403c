#include "bench/samples.h"

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

TEST(Samples, OfNothingAreZero) {
  const Samples samples;
  EXPECT_EQ(samples.count(), 0U);
  EXPECT_EQ(samples.percentile(50), 0);
  EXPECT_EQ(samples.most(), 0);
  EXPECT_EQ(samples.mean(), 0);
}

TEST(Samples, GiveTheNearestRank) {
  Samples samples;
  for (int i = 100; i >= 1; --i) samples.add(i);
  EXPECT_EQ(samples.percentile(50), 50);
  EXPECT_EQ(samples.percentile(95), 95);
  EXPECT_EQ(samples.percentile(99), 99);
  EXPECT_EQ(samples.percentile(0), 1);
  EXPECT_EQ(samples.most(), 100);
  EXPECT_EQ(samples.mean(), 50.5);
}

TEST(Samples, AreJoinedBeforePercentilesAreTaken) {
  Samples fast, slow;
  for (int i = 0; i < 98; ++i) fast.add(1);
  slow.add(100);
  slow.add(200);
  fast.add(slow);
  EXPECT_EQ(fast.count(), 100U);
  EXPECT_EQ(fast.percentile(98), 1);
  EXPECT_EQ(fast.percentile(99), 100);
  EXPECT_EQ(fast.most(), 200);
}

}  // namespace
}  // namespace chasqui::bench
