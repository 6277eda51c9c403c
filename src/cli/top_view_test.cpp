#include "cli/top_view.h"

#include <gtest/gtest.h>

namespace chasqui::cli {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + '\n';
  return out;
}

MetricsSample sample(int tokens, int steps) {
  return MetricsSample::parse(
      "chasqui_generation_tokens_total " + std::to_string(tokens) + "\nchasqui_steps_total{kind=\"decode\"} " +
      std::to_string(steps) + "\nchasqui_step_rows_sum{kind=\"decode\"} " + std::to_string(steps * 4) +
      "\nchasqui_requests_waiting{class=\"interactive\"} 3\nchasqui_kv_slots_used{worker=\"0\"} 2\n" +
      "chasqui_kv_slots{worker=\"0\"} 4\n");
}

TEST(TopView, RatesAreOfWhatHappenedBetweenTwoSamples) {
  TopView view;
  view.add(sample(100, 10), 0);
  view.add(sample(150, 30), 2);
  const std::string screen = joined(view.lines({120, 40}, Paint(false)));
  EXPECT_NE(screen.find("      25.0"), std::string::npos) << screen;
  EXPECT_NE(screen.find("decode 10.0/s of 4.0 rows"), std::string::npos) << screen;
  EXPECT_NE(screen.find("interactive 3"), std::string::npos) << screen;
  EXPECT_NE(screen.find("worker 0"), std::string::npos) << screen;
}

TEST(TopView, NothingIsWiderOrLongerThanTheScreen) {
  TopView view;
  view.describe("A name – of more than twenty characters");
  for (int i = 0; i < 300; ++i) view.add(sample(i * 10, i), 1);
  const auto lines = view.lines({20, 5}, Paint(false));
  EXPECT_LE(lines.size(), 5u);
  for (const std::string& line : lines) {
    std::size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
    EXPECT_LE(columns, 20u) << line;
  }
}

TEST(TopView, AFaultIsSaidAboveTheLastFigures) {
  TopView view;
  view.add(sample(1, 1), 0);
  view.complain("no server listens");
  EXPECT_NE(joined(view.lines({80, 24}, Paint(false))).find("! no server listens"), std::string::npos);
}

TEST(Sparkline, IsAsHighAsItsShareOfTheLargest) {
  EXPECT_EQ(sparkline({0.0, 4.0, 8.0}, 10), "▁▄█");
  EXPECT_EQ(sparkline({1.0, std::nullopt, 1.0}, 10), "█ █");
  EXPECT_EQ(sparkline({9.0, 1.0, 2.0}, 2), "▄█") << "of those that are shown";
  EXPECT_EQ(sparkline({}, 5), "");
}

}  // namespace
}  // namespace chasqui::cli
