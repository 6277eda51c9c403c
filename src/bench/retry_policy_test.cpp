#include "bench/retry_policy.h"

#include <gtest/gtest.h>

namespace chasqui::bench {
namespace {

TEST(RetryPolicy, KnowsRefusals) {
  EXPECT_TRUE(is_refusal(429));
  EXPECT_TRUE(is_refusal(503));
  EXPECT_FALSE(is_refusal(500));
  EXPECT_FALSE(is_refusal(200));
}

TEST(RetryPolicy, PrefersTheFinerHeader) {
  EXPECT_EQ(retry_delay("2", ""), Duration(seconds(2)));
  EXPECT_EQ(retry_delay("2", "250"), Duration(milliseconds(250)));
  EXPECT_EQ(retry_delay("", "0"), Duration{});
  EXPECT_EQ(retry_delay("3", "soon"), Duration(seconds(3)));
}

TEST(RetryPolicy, TakesNothingUnusable) {
  for (const std::string_view text : {"", "soon", "-1", "121", "1e9", "nan", "Wed, 21 Oct 2026 07:28:00 GMT"}) {
    EXPECT_FALSE(retry_delay(text, "").has_value()) << text;
  }
  for (const std::string_view text : {"", "-1", "120001", "1e9", "nan", "1s"}) {
    EXPECT_FALSE(retry_delay("", text).has_value()) << text;
  }
}

}  // namespace
}  // namespace chasqui::bench
