#include "engine/engine_metrics.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

Event ended(FinishReason reason, TokenCount completion) {
  Event event;
  event.kind = Event::Kind::finished;
  event.reason = reason;
  event.usage.completion = completion;
  event.usage.queue = milliseconds(100);
  event.usage.prefill = milliseconds(200);
  event.usage.decode = milliseconds(300);
  return event;
}

TEST(EngineMetrics, AnEndIsCountedByItsReasonAndTimed) {
  EngineMetrics metrics;
  Event event = ended(FinishReason::deadline, 4);
  event.service_class = ServiceClass::background;
  metrics.count_finished(event);
  EXPECT_EQ(metrics.requests_finished[static_cast<int>(FinishReason::deadline)].value(), 1u);
  EXPECT_EQ(metrics.requests_finished[static_cast<int>(FinishReason::stop)].value(), 0u);
  EXPECT_DOUBLE_EQ(metrics.waits[2].queue_seconds.sum(), 0.1);
  EXPECT_DOUBLE_EQ(metrics.prefill_seconds.sum(), 0.2);
  EXPECT_DOUBLE_EQ(metrics.waits[2].time_to_first_token_seconds.sum(), 0.3);
  EXPECT_DOUBLE_EQ(metrics.request_seconds.sum(), 0.6);
  EXPECT_DOUBLE_EQ(metrics.time_per_output_token_seconds.sum(), 0.1) << "four tokens have three gaps";
}

TEST(EngineMetrics, WhoSaidNothingHasNoTimeToTheFirstToken) {
  EngineMetrics metrics;
  metrics.count_finished(ended(FinishReason::cancelled, 0));
  EXPECT_EQ(metrics.waits[1].time_to_first_token_seconds.count(), 0u);
  EXPECT_EQ(metrics.prefill_seconds.count(), 0u);
  EXPECT_EQ(metrics.time_per_output_token_seconds.count(), 0u);
  EXPECT_EQ(metrics.request_seconds.count(), 1u);
  metrics.count_finished(ended(FinishReason::length, 1));
  EXPECT_EQ(metrics.waits[1].time_to_first_token_seconds.count(), 1u);
  EXPECT_EQ(metrics.time_per_output_token_seconds.count(), 0u) << "one token has no gap";
}

TEST(EngineMetrics, TheTimeBetweenTokensCountsFromTheSecondTokenOn) {
  EngineMetrics metrics;
  Event event;
  event.service_class = ServiceClass::interactive;
  metrics.count_tokens({event});
  event.since_last = milliseconds(50);
  metrics.count_tokens({event});
  EXPECT_EQ(metrics.waits[0].inter_token_seconds.count(), 1u);
  EXPECT_DOUBLE_EQ(metrics.waits[0].inter_token_seconds.sum(), 0.05);
}

TEST(EngineMetrics, TokensOfAStepAreCountedByTheirClassAndDistance) {
  EngineMetrics metrics;
  std::vector<Event> events(7);
  for (std::size_t i = 0; i < events.size(); ++i) {
    events[i].since_last = milliseconds(i < 4 ? 50 : 20);
    events[i].service_class = i == 0 ? ServiceClass::interactive : ServiceClass::standard;
  }
  events[2].kind = Event::Kind::finished;
  events[3].since_last = Duration::zero();
  metrics.count_tokens(events);
  EXPECT_EQ(metrics.waits[0].inter_token_seconds.count(), 1u);
  EXPECT_EQ(metrics.waits[1].inter_token_seconds.count(), 4u);
  EXPECT_DOUBLE_EQ(metrics.waits[1].inter_token_seconds.sum(), 0.05 + 3 * 0.02);
  EXPECT_DOUBLE_EQ(metrics.inter_token_ms.sum(), 2 * 50 + 3 * 20);
}

TEST(EngineMetrics, ThePageIsWellFormedPrometheusText) {
  EngineMetrics metrics;
  metrics.count_finished(ended(FinishReason::stop, 4));
  MetricsPage page;
  metrics.each_worker.add_to(page);
  metrics.add_shared_to(page);
  metrics.of_disk.add_to(page);
  std::set<std::string> series, described;
  std::istringstream text(page.render());
  std::string type;  // the metric that the last comment has announced
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("# ")) {
      const std::size_t end = line.find(' ', 7);
      type = line.substr(7, end - 7);
      EXPECT_TRUE(described.insert(line.substr(0, end)).second) << "twice: " << line;
      EXPECT_EQ(line.back() == '.', line.starts_with("# HELP")) << line;
      continue;
    }
    const std::string name = line.substr(0, line.rfind(' '));
    EXPECT_TRUE(series.insert(name).second) << "twice: " << line;
    EXPECT_TRUE(name.starts_with("chasqui_") && name.starts_with(type)) << "without HELP and TYPE: " << line;
    EXPECT_EQ(std::count(name.begin(), name.end(), '{'), std::count(name.begin(), name.end(), '}')) << line;
    EXPECT_EQ(std::count(name.begin(), name.end(), '"') % 2, 0) << line;
    EXPECT_NO_THROW(std::ignore = std::stod(line.substr(name.size()))) << line;
  }
  for (const char* reason : {"stop", "length", "cancelled", "deadline", "error"}) {
    EXPECT_TRUE(series.contains("chasqui_requests_finished_total{reason=\"" + std::string(reason) + "\"}"));
  }
  EXPECT_TRUE(series.contains("chasqui_step_rows_bucket{kind=\"prefill\",le=\"512\"}"));
}

}  // namespace
}  // namespace chasqui
