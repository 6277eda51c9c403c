#include "base/limits.h"

#include <set>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(Limits, HaveOneNameEachAndSayWhatHappens) {
  std::set<std::string_view> names;
  for (const Limit& limit : kLimits) {
    EXPECT_TRUE(names.insert(limit.name).second) << limit.name;
    EXPECT_FALSE(limit.of.empty()) << limit.name;
    EXPECT_FALSE(limit.reached.empty()) << limit.name;
    EXPECT_EQ(limit.unit == LimitUnit::time, limit.name.ends_with("_seconds")) << limit.name;
    EXPECT_EQ(limit.unit == LimitUnit::bytes, limit.name.ends_with("_bytes")) << limit.name;
    EXPECT_TRUE(limit.standard > 0 || !limit.depends.empty()) << limit.name;
    EXPECT_TRUE(limit.flag.empty() || limit.flag.starts_with("--")) << limit.name;
    EXPECT_TRUE(limit.metric.empty() || limit.metric.starts_with("chasqui_")) << limit.name;
  }
}

TEST(Limits, AreFoundByName) {
  static_assert(kSizeLimit<"header_bytes"> == 16 * 1024);
  static_assert(kTimeLimit<"header_seconds"> == seconds(10));
  static_assert(kCountLimit<"stop"> == 64);
}

}  // namespace
}  // namespace chasqui
