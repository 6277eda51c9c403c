#include "pull/retries.h"

#include <gtest/gtest.h>

namespace chasqui::pull {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Retries, DoubleTheirPauseAndEnd) {
  Retries retries(6);
  for (const int ms : {500, 1000, 2000, 4000, 8000, 8000}) EXPECT_EQ(retries.next(), milliseconds(ms));
  EXPECT_EQ(retries.next(), std::nullopt);
  EXPECT_EQ(Retries(0).next(), std::nullopt);
}

TEST(Retries, BeginAgainWhereATryBroughtSomething) {
  Retries retries(2);
  retries.next();
  retries.next();
  retries.brought(Retries::kBroughtSomething - 1);
  EXPECT_EQ(retries.next(), std::nullopt);
  retries.brought(Retries::kBroughtSomething);
  EXPECT_EQ(retries.next(), milliseconds(500));
}

TEST(Retries, WaitAsLongAsTheServerAsksWithinReason) {
  Retries retries(5);
  EXPECT_EQ(retries.next(seconds(3)), seconds(3));
  EXPECT_EQ(retries.next(seconds(100'000)), seconds(60));
  EXPECT_EQ(retries.next(milliseconds(1)), seconds(2));
}

}  // namespace
}  // namespace chasqui::pull
