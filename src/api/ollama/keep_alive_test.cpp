#include "api/ollama/keep_alive.h"

#include <string>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(KeepAlive, ReadsDurationsAsGoWritesThem) {
  EXPECT_EQ(parse_keep_alive("5m"), seconds(300));
  EXPECT_EQ(parse_keep_alive("1h30m"), seconds(5400));
  EXPECT_EQ(parse_keep_alive("1.5s"), milliseconds(1500));
  EXPECT_EQ(parse_keep_alive("300ms"), milliseconds(300));
  EXPECT_EQ(parse_keep_alive("20µs"), microseconds(20));
  EXPECT_EQ(parse_keep_alive("-1m"), seconds(-60));
  EXPECT_EQ(parse_keep_alive("+2s"), seconds(2));
  EXPECT_EQ(parse_keep_alive("0"), Duration::zero());
}

TEST(KeepAlive, TakesNumbersAsSeconds) {
  EXPECT_EQ(parse_keep_alive("90"), seconds(90));
  EXPECT_EQ(parse_keep_alive("-1"), seconds(-1));
  EXPECT_EQ(keep_alive_of(0.25), milliseconds(250));
}

TEST(KeepAlive, RefusesOtherTexts) {
  for (const char* text : {"", "-", "m", "5x", "5 m", "1h30", "5m ", "--5m", "1e3s", "nan", "inf", "5m-3s", "1..5s"}) {
    EXPECT_FALSE(parse_keep_alive(text)) << text;
  }
}

TEST(KeepAlive, CutsWhatNoClockCanHold) {
  const Duration most = keep_alive_of(1e300);
  EXPECT_GT(most, seconds(3'000'000'000));
  EXPECT_EQ(parse_keep_alive(std::string(400, '9') + "h"), std::nullopt);
  EXPECT_EQ(parse_keep_alive("99999999999999999999h"), most);
  EXPECT_EQ(keep_alive_of(-1e300), -most);
}

}  // namespace
}  // namespace chasqui
