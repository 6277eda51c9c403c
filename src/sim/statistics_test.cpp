#include "sim/statistics.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

class OneTenant final : public Workload {
 public:
  OneTenant() { tenants_ = {"t"}; }
  bool next(PlannedRequest&) override { return false; }
};

TEST(Objective, ReadsItsLimits) {
  const Result<Objective> objective = Objective::parse("ttft:1000,itl:200.5", "--goodput");
  ASSERT_TRUE(objective.has_value());
  EXPECT_EQ(objective.value().ttft, seconds(1));
  EXPECT_EQ(objective.value().itl, microseconds(200'500));
  EXPECT_FALSE(objective.value().e2e.has_value());
  for (const char* wrong : {"ttft", "ttft:", "ttft:x", "speed:1", "ttft:-1", "ttft:1,itl"}) {
    EXPECT_FALSE(Objective::parse(wrong, "--goodput").has_value()) << wrong;
  }
}

TEST(Statistics, CountALifeInAllItsGroups) {
  OneTenant workload;
  Statistics statistics(workload, Objective{milliseconds(150), milliseconds(50), {}, {}});
  const TimePoint start = TimePoint{} + seconds(10);
  for (const int gap : {40, 60}) {
    SimRequest life;
    life.plan.service_class = ServiceClass::interactive;
    life.first_try = start;
    statistics.arrived(life);
    Event event;
    event.tokens = 1;
    for (int i = 0; i < 3; ++i) {
      life.said = i + 1;
      statistics.told(life, event, start + milliseconds(100 + i * gap));
    }
    statistics.ended(life, Outcome::ok, start + milliseconds(100 + 2 * gap));
  }
  ASSERT_EQ(statistics.groups().size(), 5u);
  for (const std::size_t i : {0u, 1u, 4u}) {
    const Group& group = statistics.groups()[i];
    EXPECT_EQ(group.requests, 2u);
    EXPECT_EQ(group.outcomes[0], 2u);
    EXPECT_EQ(group.tokens, 6u);
    EXPECT_EQ(group.good, 1u) << "the one with gaps of 40 ms";
    EXPECT_EQ(group.good_tokens, 3u);
    EXPECT_EQ(group.ttft.at(0.5), 100);
    EXPECT_EQ(group.itl.count(), 4u);
    EXPECT_EQ(group.itl.at(0.5), 40);
    EXPECT_EQ(group.itl.largest(), 60);
    EXPECT_EQ(group.tpot.at(1), 60);
    EXPECT_EQ(group.e2e.at(1), 220);
  }
  EXPECT_EQ(statistics.groups()[2].requests, 0u);
}

TEST(Statistics, TheHashSeesEveryDifference) {
  OneTenant workload;
  const auto hash = [&](std::uint64_t serial, TimePoint now, const std::string& text) {
    Statistics statistics(workload, {});
    Event event;
    event.text = text;
    statistics.hash(event, serial, now);
    return statistics.event_hash();
  };
  const std::uint64_t first = hash(1, TimePoint{}, "a");
  EXPECT_EQ(hash(1, TimePoint{}, "a"), first);
  EXPECT_NE(hash(2, TimePoint{}, "a"), first);
  EXPECT_NE(hash(1, TimePoint{} + Duration(1), "a"), first);
  EXPECT_NE(hash(1, TimePoint{}, "b"), first);
}

}  // namespace
}  // namespace chasqui
