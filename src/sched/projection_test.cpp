// What the projection says of servers in known states; a decode step takes 50 ms, a row of a prompt 1 ms.
#include "sched/projection.h"

#include <optional>

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

constexpr TimePoint kNow{std::chrono::hours(1)};

class ProjectionTest : public ::testing::Test {
 protected:
  struct Ask {
    ServiceClass service_class = kStandard;
    std::uint32_t tenant = 1;
    double service = 0;
    double reading = 0;
    double steps = 100;
    Duration ago{};  // since when it has its slot, or waits
    double swap = 0;
    TokenCount cells = 100;
    TokenCount charge = 0;
  };

  ProjectionTest() {
    for (TokenCount rows = 1; rows <= 8; ++rows) times_.observe(Batch::Kind::decode, {rows, 1}, milliseconds(50));
    times_.observe(Batch::Kind::prefill, {256, 1}, milliseconds(256));
  }

  void slots(std::int32_t slots, TokenCount cells = 0) {
    projection_.emplace(targets_, KvLedger::Layout{slots, cells > 0 ? cells : 1000 * slots, 1000, cells > 0});
    projection_->clear();
  }
  Projection::Member member(const Ask& ask) {
    Projection::Member out;
    out.standing = urgency().of_newcomer(ask.service_class, ask.tenant, ask.service, 32);
    out.standing.id = RequestId{++ids_};
    out.reading = ask.reading;
    out.steps = ask.steps;
    out.swap = ask.swap;
    out.cells = ask.cells;
    out.charge = ask.charge;
    return out;
  }
  void running(const Ask& ask) {
    Projection::Member out = member(ask);
    out.standing.slot_since = kNow - ask.ago;
    projection_->add_running(out);
  }
  void waiting(const Ask& ask) {
    Projection::Member out = member(ask);
    out.standing.waiting_since = kNow - ask.ago;
    out.standing.score -= to_seconds(ask.ago);
    projection_->add_waiting(out);
  }
  Urgency urgency() const { return {targets_, fair_policy(), counters_, groups_, overtaking_, kNow, {}, 0.001}; }
  void roll() { projection_->roll(urgency(), times_, last_swap_, 1); }
  double wait(ServiceClass service_class) const {
    return projection_->wait().seconds[static_cast<std::size_t>(service_class)];
  }
  double wait_of_tenant(std::uint32_t tenant, ServiceClass service_class) const {
    for (const Projection::OfTenant& of : projection_->of_tenants()) {
      if (of.tenant == tenant) return of.seconds[static_cast<std::size_t>(service_class)];
    }
    ADD_FAILURE() << "tenant " << tenant << " is not listed";
    return -1;
  }

  SchedulerTargets targets_;
  LastSwap last_swap_;
  TenantCounters counters_;
  GroupCounters groups_;
  Overtaking overtaking_;
  StepTime times_;
  std::optional<Projection> projection_;
  std::uint64_t ids_ = 0;
};

TEST_F(ProjectionTest, NoRequestWaitsOnAnEmptyServer) {
  slots(4);
  roll();
  for (const double seconds : projection_->wait().seconds) EXPECT_EQ(seconds, 0);
  for (const std::int32_t room : projection_->wait().room) EXPECT_EQ(room, 4);
}

TEST_F(ProjectionTest, BackgroundStreamsOnAllSlotsDoNotKeepAnInteractiveRequestWaiting) {
  slots(4);
  for (int i = 0; i < 4; ++i) running({.service_class = kBackground, .steps = 1000});
  for (int i = 0; i < 20; ++i) waiting({.service_class = kBackground, .steps = 1000});
  roll();
  EXPECT_LT(wait(kInteractive), 0.1);
  EXPECT_LT(wait(kStandard), 0.1);
  EXPECT_GT(wait(kBackground), 5);
  EXPECT_EQ(projection_->wait().room[0], 4) << "so many would get slots at once";
  EXPECT_EQ(projection_->wait().room[2], 0);
}

TEST_F(ProjectionTest, OneThatHoldsOnKeepsItsSlotForASlice) {
  slots(1);
  Projection::Member holder = member({.service_class = kBackground, .steps = 1000});
  holder.standing.slot_since = kNow;
  holder.standing.holds_on = true;
  projection_->add_running(holder);
  roll();
  EXPECT_GT(wait(kInteractive), 0.9);
  EXPECT_LT(wait(kInteractive), 1.5);
}

TEST_F(ProjectionTest, UnreadPromptsOfOthersDelayByTheirOrderAndNotByTheirLength) {
  slots(4);
  running({.service_class = kBackground, .reading = 20});
  running({.service_class = kInteractive, .reading = 0.3});
  roll();
  EXPECT_NEAR(wait(kInteractive), 0.3, 0.05) << "what is due before it";
  EXPECT_NEAR(wait(kStandard), 0.3, 0.05) << "a lesser class is read later";
}

TEST_F(ProjectionTest, PromptsAreReadMoreSlowlyBesideStreams) {
  slots(4);
  running({.service_class = kInteractive, .reading = 0.6});
  running({.service_class = kInteractive, .steps = 1000});
  roll();
  EXPECT_GT(wait(kInteractive), 0.65);
  EXPECT_LT(wait(kInteractive), 1.5);
  EXPECT_LT(projection_->reading_share(), 1);
}

TEST_F(ProjectionTest, ASlotIsFreeWhenTheShortestAnswerEnds) {
  slots(2);
  running({.steps = 100});
  running({.steps = 40});
  roll();
  EXPECT_NEAR(wait(kStandard), 2, 0.3) << "40 steps of 50 ms";
}

TEST_F(ProjectionTest, ATenantThatHasHadMoreGivesUpASlotAfterASlice) {
  slots(2);
  for (int i = 0; i < 2; ++i) running({.tenant = 1, .service = 1000, .steps = 10'000});
  for (int i = 0; i < 8; ++i) waiting({.tenant = 1, .service = 1000, .steps = 10'000});
  waiting({.tenant = 2, .service = 500});
  roll();
  EXPECT_GT(wait_of_tenant(2, kStandard), 0.9);
  EXPECT_LT(wait_of_tenant(2, kStandard), 3);
  EXPECT_GT(wait_of_tenant(1, kStandard), 2 * wait_of_tenant(2, kStandard));
  EXPECT_LE(wait(kStandard), wait_of_tenant(2, kStandard) + 0.1) << "one that has nothing here";
}

TEST_F(ProjectionTest, EqualsTakeTurns) {
  slots(1);
  running({.steps = 10'000});
  waiting({.steps = 10'000});
  roll();
  const auto& line = projection_->line(urgency());
  ASSERT_EQ(line.size(), 1u);
  EXPECT_GT(line[0].seconds, 7) << "eight slices";
  EXPECT_LT(line[0].seconds, 10);
}

TEST_F(ProjectionTest, CostlyCopiesMakeSlicesLonger) {
  slots(1);
  running({.steps = 10'000, .swap = 0.1});
  waiting({.steps = 10'000, .swap = 0.1});
  roll();
  EXPECT_GT(projection_->line(urgency())[0].seconds, 15) << "eight times twenty copies";
}

// Copies of all sixteen would take long; a tenant without a slot gets the first sooner, and each of several does.
TEST_F(ProjectionTest, CopiesOfManySlotsAreNotWaitedForByATenantThatHasNone) {
  slots(16);
  for (int i = 0; i < 16; ++i) running({.tenant = 1, .service = 1000, .steps = 10'000, .swap = 0.04});
  for (int i = 0; i < 2; ++i) waiting({.tenant = 2, .service = 500, .steps = 10'000, .swap = 0.04});
  waiting({.tenant = 3, .service = 500, .steps = 10'000, .swap = 0.04});
  roll();
  const auto& line = projection_->line(urgency());
  ASSERT_EQ(line.size(), 3u);
  EXPECT_LT(line[0].seconds, 1.2) << "a slice";
  EXPECT_EQ(line[0].id.value, 17u);
  EXPECT_EQ(line[1].id.value, 19u);
  EXPECT_GT(line[1].seconds - line[0].seconds, 0.75) << "twenty copies";
  EXPECT_LT(line[1].seconds - line[0].seconds, 1.6) << "of a few steps of the projection more";
  EXPECT_GT(line[2].seconds, 12) << "twenty times sixteen copies for the second one of a tenant";
}

TEST_F(ProjectionTest, InOnePoolCellsAreWaitedFor) {
  slots(4, 1000);
  running({.steps = 40, .cells = 900});
  waiting({.steps = 10, .cells = 300});
  roll();
  EXPECT_NEAR(projection_->line(urgency())[0].seconds, 2, 0.3);
}

// Tenants that are charged for prompts go back behind the others in all their lanes.
TEST_F(ProjectionTest, InALongLineTenantsTakeTurnsByWhatTheyAreCharged) {
  slots(1);
  running({.service_class = ServiceClass::interactive, .tenant = 9, .steps = 1e6});
  for (int i = 0; i < 3; ++i) {
    waiting({.tenant = 1, .charge = 100});
    waiting({.tenant = 2, .charge = 50});
    waiting({.service_class = ServiceClass::background, .tenant = 3, .charge = 1});
  }
  roll();
  std::vector<std::uint64_t> order;
  for (const Projection::Place& place : projection_->line(urgency())) order.push_back(place.id.value);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{2, 3, 6, 5, 9, 8, 4, 7, 10}));
}

TEST_F(ProjectionTest, ALongLineIsExtrapolated) {
  slots(2);
  for (int i = 0; i < 2; ++i) running({.steps = 20});
  for (int i = 0; i < 500; ++i) waiting({.steps = 20, .ago = milliseconds(500 - i)});
  roll();
  EXPECT_NEAR(wait_of_tenant(1, kStandard), 250, 40) << "two each second";
  EXPECT_LT(wait(kStandard), 2) << "a tenant that has nothing here is served first";
  const auto& line = projection_->line(urgency());
  ASSERT_EQ(line.size(), 500u);
  for (std::size_t i = 1; i < line.size(); ++i) {
    EXPECT_LE(line[i - 1].seconds, line[i].seconds);
    EXPECT_LT(line[i - 1].id, line[i].id) << "the oldest first";
  }
  EXPECT_NEAR(line.back().seconds, 250, 40);
}

TEST_F(ProjectionTest, ALongPromptLetsShorterOnesPass) {
  slots(1);
  running({.steps = 20});
  for (int i = 0; i < 4; ++i) waiting({.steps = 20});
  const Urgency loaded(targets_, fair_policy(), counters_, groups_, overtaking_, kNow, seconds(10), 0.01);
  projection_->roll(loaded, times_, last_swap_, 1);
  const Projection::Seconds& seconds = projection_->wait().seconds;
  EXPECT_GE(seconds[kServiceClasses + 1], seconds[1]);
}

}  // namespace
}  // namespace chasqui
