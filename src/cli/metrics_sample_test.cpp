#include "cli/metrics_sample.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

TEST(MetricsSample, SeriesAreSummedByTheirLabels) {
  const auto sample = MetricsSample::parse(
      "# HELP a x\na 3\nb{class=\"x\",worker=\"0\"} 1\nb{class=\"y\",worker=\"0\"} 2\nb{class=\"x\",worker=\"1\"} 4.5\n"
      "odd{t=\"a}\\\"b\"} 7 1700000000\nbroken{ 1\nalso\n 4\nnan NaN\n");
  EXPECT_EQ(sample.sum("a"), 3);
  EXPECT_EQ(sample.sum("b"), 7.5);
  EXPECT_EQ(sample.sum("b", {{"class", "x"}}), 5.5);
  EXPECT_EQ(sample.sum("b", {{"class", "x"}, {"worker", "1"}}), 4.5);
  EXPECT_EQ(sample.sum("odd", {{"t", "a}\"b"}}), 7);
  EXPECT_EQ(sample.values_of("b", "class"), (std::vector<std::string>{"x", "y"}));
  EXPECT_FALSE(sample.has("nan"));
  EXPECT_TRUE(sample.has("a"));
}

TEST(MetricsSample, ACounterThatFellBelongsToANewProcess) {
  const auto before = MetricsSample::parse("c 10\n");
  EXPECT_EQ(grown(before, MetricsSample::parse("c 14\n"), "c"), 4);
  EXPECT_EQ(grown(before, MetricsSample::parse("c 3\n"), "c"), 3);
}

TEST(MetricsSample, QuantilesAreOfWhatHappenedInBetween) {
  const auto before =
      MetricsSample::parse("h_bucket{le=\"0.1\"} 100\nh_bucket{le=\"0.2\"} 100\nh_bucket{le=\"+Inf\"} 100\n");
  const auto now =
      MetricsSample::parse("h_bucket{le=\"0.1\"} 100\nh_bucket{le=\"0.2\"} 110\nh_bucket{le=\"+Inf\"} 110\n");
  EXPECT_DOUBLE_EQ(quantile_between(before, now, "h", 0.5).value(), 0.15) << "what was before does not count";
  EXPECT_FALSE(quantile_between(now, now, "h", 0.5).has_value());
  EXPECT_DOUBLE_EQ(quantile_between(now, before, "h", 0.5).value(), 0.05) << "a new process";
  const auto late =
      MetricsSample::parse("h_bucket{le=\"0.1\"} 100\nh_bucket{le=\"0.2\"} 100\nh_bucket{le=\"+Inf\"} 104\n");
  EXPECT_DOUBLE_EQ(quantile_between(before, late, "h", 0.5).value(), 0.2) << "beyond the last bound nothing is known";
}

}  // namespace
}  // namespace chasqui::cli
