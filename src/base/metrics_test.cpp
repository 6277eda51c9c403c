#include "base/metrics.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(MetricsPage, WritesCountersAndGaugesAsPrometheusText) {
  Counter tokens;
  Gauge running;
  MetricsPage page;
  page.add("chasqui_tokens_total", "Tokens generated.", tokens);
  page.add("chasqui_requests_running", "Requests that hold a slot.", running);
  page.add_computed("chasqui_uptime_seconds", "Since the start.", [] { return 1.5; });
  tokens.add();
  tokens.add(41);
  running.set(5);
  running.add(-2);
  EXPECT_EQ(page.render(),
            "# HELP chasqui_tokens_total Tokens generated.\n"
            "# TYPE chasqui_tokens_total counter\n"
            "chasqui_tokens_total 42\n"
            "# HELP chasqui_requests_running Requests that hold a slot.\n"
            "# TYPE chasqui_requests_running gauge\n"
            "chasqui_requests_running 3\n"
            "# HELP chasqui_uptime_seconds Since the start.\n"
            "# TYPE chasqui_uptime_seconds gauge\n"
            "chasqui_uptime_seconds 1.5\n");
}

TEST(MetricsPage, SaysHelpAndTypeOnceForAllLabelsOfAName) {
  Counter stop, length;
  length.add(2);
  MetricsPage page;
  page.add("finished_total", "Ends.", stop, "reason=\"stop\"");
  page.add("finished_total", "Ends.", length, "reason=\"length\"");
  EXPECT_EQ(page.render(),
            "# HELP finished_total Ends.\n# TYPE finished_total counter\n"
            "finished_total{reason=\"stop\"} 0\nfinished_total{reason=\"length\"} 2\n");
}

TEST(MetricsPage, WhatSeveralWorkersCountStandsTogetherUnderTheirLabels) {
  Gauge running[2];
  Counter stop[2], refused;
  MetricsPage page;
  for (int worker = 0; worker < 2; ++worker) {
    page.label_with("worker=\"" + std::to_string(worker) + '"');
    page.add("running", "Running.", running[worker]);
    page.add("finished_total", "Ends.", stop[worker], "reason=\"stop\"");
  }
  page.label_with({});
  page.add("refused_total", "Refused.", refused);
  running[1].set(7);
  EXPECT_EQ(page.render(),
            "# HELP running Running.\n# TYPE running gauge\n"
            "running{worker=\"0\"} 0\nrunning{worker=\"1\"} 7\n"
            "# HELP finished_total Ends.\n# TYPE finished_total counter\n"
            "finished_total{worker=\"0\",reason=\"stop\"} 0\nfinished_total{worker=\"1\",reason=\"stop\"} 0\n"
            "# HELP refused_total Refused.\n# TYPE refused_total counter\nrefused_total 0\n");
}

TEST(MetricsPage, HistogramsOfOneNameAreOneSumAndHaveNoLabelOfTheirWorker) {
  Histogram of[2]{Histogram({1, 2}), Histogram({1, 2})};
  MetricsPage page;
  for (int worker = 0; worker < 2; ++worker) {
    page.label_with("worker=\"" + std::to_string(worker) + '"');
    page.add("rows", "Rows.", of[worker], "kind=\"decode\"");
  }
  of[0].observe(1);
  of[1].observe(2);
  of[1].observe(8);
  EXPECT_EQ(
      page.render(),
      "# HELP rows Rows.\n# TYPE rows histogram\n"
      "rows_bucket{kind=\"decode\",le=\"1\"} 1\nrows_bucket{kind=\"decode\",le=\"2\"} 2\n"
      "rows_bucket{kind=\"decode\",le=\"+Inf\"} 3\nrows_sum{kind=\"decode\"} 11\nrows_count{kind=\"decode\"} 3\n");
}

TEST(MetricsPage, CountersOfOneNameAndLabelsAreOneSum) {
  Counter a, b;
  a.add(2);
  b.add(5);
  MetricsPage page;
  page.add("c_total", "C.", a);
  page.add("c_total", "C.", b);
  EXPECT_EQ(page.render(), "# HELP c_total C.\n# TYPE c_total counter\nc_total 7\n");
}

TEST(MetricsPage, AHistogramMayShowSomeOfItsBoundsOnly) {
  Histogram h({1, 2, 3, 4});
  for (const double value : {1.0, 2.0, 3.0, 9.0}) h.observe(value);
  MetricsPage page;
  page.add("h", "H.", h, {}, {2, 3});
  EXPECT_EQ(page.render(),
            "# HELP h H.\n# TYPE h histogram\n"
            "h_bucket{le=\"2\"} 2\nh_bucket{le=\"3\"} 3\nh_bucket{le=\"+Inf\"} 4\nh_sum 15\nh_count 4\n");
}

TEST(MetricsPage, LabelsOfASampleMayBeMadeWhenItIsRead) {
  std::string who = "a";
  MetricsPage page;
  page.add_labelled(
      "info", "Who.", [] { return 7.0; }, "who=\"\"", [&who] { return "who=\"" + who + '"'; }, 100);
  who = "b";
  EXPECT_EQ(page.render(), "# HELP info Who.\n# TYPE info gauge\ninfo{who=\"b\"} 7\n");
  EXPECT_EQ(page.families().front().labels, std::vector<std::string_view>{"who"});
}

TEST(MetricsPage, MayHaveTheNamesWithAPrefixOnly) {
  Counter counter;
  Histogram histogram({1});
  MetricsPage page;
  page.add("ours_total", "Ours.", counter);
  page.add("theirs_total", "Theirs.", counter);
  page.add("ours_seconds", "Times.", histogram);
  EXPECT_EQ(page.render("ours_"),
            "# HELP ours_total Ours.\n# TYPE ours_total counter\nours_total 0\n"
            "# HELP ours_seconds Times.\n# TYPE ours_seconds histogram\n"
            "ours_seconds_bucket{le=\"1\"} 0\nours_seconds_bucket{le=\"+Inf\"} 0\nours_seconds_sum "
            "0\nours_seconds_count 0\n");
  EXPECT_EQ(page.render("unknown"), "");
}

// Two workers' counters, a histogram of many buckets and one that others rely on, all counting for a year.
struct CrowdedPage {
  explicit CrowdedPage(std::size_t bytes) {
    for (int worker = 0; worker < 2; ++worker) {
      page.label_with("worker=\"" + std::to_string(worker) + '"');
      for (int i = 0; i < 20; ++i) page.add("c" + std::to_string(i) + "_total", "C.", counter);
    }
    page.label_with({});
    page.add("many", "M.", many);
    page.keep_buckets(true);
    page.add("others", "O.", others);
    page.fit(bytes);
    counter.add(3'000'000'000'000);
    for (int i = 0; i < 100; ++i) many.observe(0.1 * i);
  }
  std::size_t lines_with(std::string_view text) const {
    const std::string rendered = page.render();
    std::size_t count = 0;
    for (std::size_t at = rendered.find(text); at != rendered.npos; at = rendered.find(text, at + 1)) ++count;
    return count;
  }

  Counter counter;
  Histogram many{Histogram::powers_of_two(1 << 20)}, others{Histogram::powers_of_two(1 << 20)};
  MetricsPage page;
};

TEST(MetricsPage, LeavesOutWhatMattersLeastUntilItFits) {
  const CrowdedPage all(100'000);
  EXPECT_EQ(all.lines_with("worker="), 40U);
  EXPECT_EQ(all.lines_with("many_bucket"), 22U);
  const std::size_t needed = all.page.bytes_at_most();

  const CrowdedPage thinned(needed - 1);
  EXPECT_EQ(thinned.lines_with("many_bucket"), 12U);
  EXPECT_EQ(thinned.lines_with("worker="), 40U);
  EXPECT_NE(thinned.page.render().find("many_bucket{le=\"1048576\"} 100\n"), std::string::npos);

  const CrowdedPage twice(thinned.page.bytes_at_most() - 1);
  EXPECT_EQ(twice.lines_with("many_bucket"), 7U);
  const CrowdedPage thrice(twice.page.bytes_at_most() - 1);
  EXPECT_EQ(thrice.lines_with("many_bucket"), 4U);
  EXPECT_EQ(thrice.lines_with("worker="), 40U);
  const CrowdedPage summed(thrice.page.bytes_at_most() - 1);
  EXPECT_EQ(summed.lines_with("worker="), 0U);
  EXPECT_EQ(summed.lines_with("many_bucket"), 4U);
  EXPECT_EQ(summed.lines_with("others_bucket"), 22U);
  EXPECT_NE(summed.page.render().find("c0_total 6000000000000\n"), std::string::npos) << summed.page.render();

  for (std::size_t bytes = needed; bytes > 3000; bytes -= 100) {
    const CrowdedPage page(bytes);
    EXPECT_LE(page.page.render().size(), bytes);
    EXPECT_LE(page.page.render().size(), page.page.bytes_at_most());
  }
}

TEST(MetricsPageDeathTest, RefusesABucketThatTheHistogramDoesNotHave) {
  Histogram h({1, 2});
  MetricsPage page;
  EXPECT_DEATH(page.add("h", "H.", h, {}, {1.5}), "check failed");
}

TEST(MetricsPage, JsonHasEverySampleUnderItsFullNameAndWhatIsForJsonOnly) {
  Counter counter;
  Histogram seed({1});
  MetricsPage page;
  page.add("a_total", "A.", counter, "k=\"v\"");
  page.add_computed("x", "X.", [] { return std::nan(""); });
  page.add_to_json("ttft_ms", "T.", seed);
  seed.observe(0.5);
  EXPECT_EQ(page.render_json(),
            "{\"a_total{k=\\\"v\\\"}\":0,\"x\":null,\"ttft_ms_bucket{le=\\\"1\\\"}\":1,"
            "\"ttft_ms_bucket{le=\\\"+Inf\\\"}\":1,\"ttft_ms_sum\":0.5,\"ttft_ms_count\":1}");
  EXPECT_EQ(page.render().find("ttft_ms"), std::string::npos);
}

TEST(MetricsPage, TellsItsFamiliesAndTheNamesOfTheirLabels) {
  Counter a, b;
  MetricsPage page;
  page.add("a_total", "A.", a, "k=\"v\\\"\",l=\"w\"");
  page.add("a_total", "A.", b, "k=\"u\",l=\"w\"");
  ASSERT_EQ(page.families().size(), 1u);
  EXPECT_EQ(page.families()[0].labels, (std::vector<std::string_view>{"k", "l"}));
  EXPECT_EQ(page.families()[0].type, "counter");
}

TEST(MetricsPage, HistogramBucketsAreCumulativeAndEndWithInfinity) {
  Histogram h({0.1, 1, 10});
  for (const double value : {0.05, 0.1, 0.5, 5.0, 10.0, 11.0}) h.observe(value);
  MetricsPage page;
  page.add("step_seconds", "Steps.", h, "kind=\"decode\"");
  EXPECT_EQ(page.render(),
            "# HELP step_seconds Steps.\n# TYPE step_seconds histogram\n"
            "step_seconds_bucket{kind=\"decode\",le=\"0.1\"} 2\n"
            "step_seconds_bucket{kind=\"decode\",le=\"1\"} 3\n"
            "step_seconds_bucket{kind=\"decode\",le=\"10\"} 5\n"
            "step_seconds_bucket{kind=\"decode\",le=\"+Inf\"} 6\n"
            "step_seconds_sum{kind=\"decode\"} 26.65\n"
            "step_seconds_count{kind=\"decode\"} 6\n");
}

TEST(MetricsPage, WritesNonFiniteValuesInPrometheusWords) {
  double value = std::nan("");
  MetricsPage page;
  page.add_computed("x", "X.", [&value] { return value; });
  EXPECT_NE(page.render().find("\nx NaN\n"), std::string::npos) << page.render();
  value = std::numeric_limits<double>::infinity();
  EXPECT_NE(page.render().find("\nx +Inf\n"), std::string::npos) << page.render();
  value = -value;
  EXPECT_NE(page.render().find("\nx -Inf\n"), std::string::npos) << page.render();
}

TEST(Histogram, CountsAndSumsWhatItWasTold) {
  Histogram h(Histogram::powers_of_two(4));
  EXPECT_EQ(h.bounds(), (std::vector<double>{1, 2, 4}));
  for (const double value : {1.0, 2.0, 3.0, 100.0}) h.observe(value);
  EXPECT_EQ(h.bucket(0), 1u);
  EXPECT_EQ(h.bucket(1), 1u);
  EXPECT_EQ(h.bucket(2), 1u);
  EXPECT_EQ(h.bucket(3), 1u);
  EXPECT_EQ(h.count(), 4u);
  EXPECT_EQ(h.sum(), 106.0);
}

TEST(Histogram, PowersOfTwoStopAtTheLastThatFits) {
  EXPECT_EQ(Histogram::powers_of_two(5).back(), 4.0);
  EXPECT_EQ(Histogram::powers_of_two(1), std::vector<double>{1});
}

TEST(HistogramDeathTest, RefusesBoundsThatDoNotAscend) { EXPECT_DEATH(Histogram({1, 0.5}), "check failed"); }

TEST(Metrics, WhatWasRetiredStaysInSumsAndLeavesGauges) {
  Counter stays;
  Counter goes;
  Gauge gauge_stays;
  Gauge gauge_goes;
  Histogram all({1, 2});
  MetricsPage page;
  page.add("c", "C.", stays);
  page.add("g", "G.", gauge_stays);
  page.add("h", "H.", all);
  stays.add(3);
  gauge_stays.set(3);
  all.observe(1);
  int owner = 0;
  {
    Histogram short_lived({1, 2});
    page.belong_to(&owner);
    page.add("c", "C.", goes);
    page.add("g", "G.", gauge_goes);
    page.add("h", "H.", short_lived);
    page.belong_to(nullptr);
    goes.add(4);
    gauge_goes.set(4);
    short_lived.observe(2, 5);
    page.retire(&owner);
  }
  goes.add(100);
  stays.add(1);
  const std::string text = page.render();
  EXPECT_NE(text.find("\nc 8\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\ng 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h_bucket{le=\"1\"} 1\nh_bucket{le=\"2\"} 6\n"), std::string::npos) << text;
  EXPECT_NE(text.find("h_sum 11\nh_count 6\n"), std::string::npos) << text;
}

TEST(Metrics, WhatIsForgottenLeavesNoSample) {
  Counter stays, goes, shared;
  MetricsPage page;
  page.add("c", "C.", stays, "of=\"x\"");
  page.add("c", "C.", shared, "of=\"z\"");
  int owner = 0;
  page.belong_to(&owner);
  page.add("c", "C.", goes, "of=\"y\"");
  page.add("c", "C.", goes, "of=\"z\"");
  page.belong_to(nullptr);
  goes.add(3);
  shared.add(1);
  EXPECT_NE(page.render().find("c{of=\"y\"} 3\n"), std::string::npos);
  EXPECT_NE(page.render().find("c{of=\"z\"} 4\n"), std::string::npos);
  page.forget(&owner);
  const std::string text = page.render();
  EXPECT_EQ(text, "# HELP c C.\n# TYPE c counter\nc{of=\"x\"} 0\nc{of=\"z\"} 1\n");
}

TEST(Metrics, AHistogramJoinsOneThatHasFewerBucketsNow) {
  Histogram first({1, 2, 3, 4, 5, 6, 7, 8});
  Histogram second({1, 2, 3, 4, 5, 6, 7, 8});
  MetricsPage page;
  page.add("h", "H.", first);
  page.fit(page.bytes_at_most() - 1);
  const std::size_t bytes = page.bytes_at_most();
  page.add("h", "H.", second);
  second.observe(8);
  EXPECT_EQ(page.bytes_at_most(), bytes);
  EXPECT_NE(page.render().find("h_count 1\n"), std::string::npos);
}

TEST(Metrics, WritersOfManyThreadsAddUp) {
  constexpr int kThreads = 4, kWrites = 5000;
  Counter counter;
  Gauge gauge;
  Histogram histogram({1, 2});
  MetricsPage page;
  page.add("c", "C.", counter);
  page.add("h", "H.", histogram);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kWrites; ++i) {
        counter.add();
        gauge.add(i % 2 == 0 ? 1 : -1);
        histogram.observe(i % 3);
      }
    });
  }
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(page.render().empty());  // the loop reads while workers write
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), static_cast<std::uint64_t>(kThreads * kWrites));
  EXPECT_EQ(gauge.value(), 0);
  EXPECT_EQ(histogram.count(), static_cast<std::uint64_t>(kThreads * kWrites));
  // 0, 1, 2 in turn: 1667 zeros, 1667 ones, 1666 twos a thread.
  EXPECT_EQ(histogram.bucket(1), static_cast<std::uint64_t>(kThreads * 1666));
  EXPECT_EQ(histogram.sum(), kThreads * (1667.0 + 2 * 1666));
}

}  // namespace
}  // namespace chasqui
