#include "api/core/trace_parent.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

constexpr std::string_view kGood = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceParent, TakesWhatTheStandardShows) {
  const auto trace = read_trace_parent(kGood, "congo=t61rcWkgMzE");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->trace, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(trace->parent, "00f067aa0ba902b7");
  EXPECT_EQ(trace->state, "congo=t61rcWkgMzE");
  EXPECT_TRUE(trace->sampled);
  EXPECT_FALSE(read_trace_parent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-fe", "")->sampled);
}

TEST(TraceParent, TakesLaterVersionsWithMoreFields) {
  EXPECT_TRUE(read_trace_parent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", ""));
}

TEST(TraceParent, IgnoresWhatIsNotOne) {
  for (const std::string_view bad : {
           "",
           "00",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
           "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
           "00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01",
       }) {
    EXPECT_FALSE(read_trace_parent(bad, "a=b")) << bad;
  }
}

TEST(TraceParent, DropsAStateThatIsTooLong) { EXPECT_EQ(read_trace_parent(kGood, std::string(513, 'a'))->state, ""); }

TEST(RandomHex, HasTheDigitsAskedForAndDiffers) {
  EXPECT_EQ(random_hex(32).size(), 32u);
  EXPECT_EQ(random_hex(16).size(), 16u);
  EXPECT_NE(random_hex(16), random_hex(16));
}

}  // namespace
}  // namespace chasqui
