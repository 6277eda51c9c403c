#include "bench/arrivals.h"

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

TEST(Arrivals, AreTheSameForASeed) {
  Arrivals a(10, 1, "x"), b(10, 1, "x"), other_seed(10, 2, "x"), other_name(10, 1, "y");
  int same_seed = 0, same_name = 0;
  for (int i = 0; i < 100; ++i) {
    const double at = a.next();
    EXPECT_EQ(at, b.next());
    same_seed += at == other_seed.next() ? 1 : 0;
    same_name += at == other_name.next() ? 1 : 0;
  }
  EXPECT_EQ(same_seed + same_name, 0);
}

TEST(Arrivals, AreAPoissonProcess) {
  Arrivals arrivals(50, 7, "x");
  constexpr int kCount = 20000;
  double last = 0, longer_than_mean = 0;
  for (int i = 0; i < kCount; ++i) {
    const double at = arrivals.next();
    ASSERT_GE(at, last);
    if (at - last > 1.0 / 50) ++longer_than_mean;
    last = at;
  }
  EXPECT_NEAR(last, kCount / 50.0, 0.03 * kCount / 50.0);
  EXPECT_NEAR(longer_than_mean / kCount, 0.3679, 0.02);  // 1/e: exponential, not regular
}

}  // namespace
}  // namespace chasqui::bench
