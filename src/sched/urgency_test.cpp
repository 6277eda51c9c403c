#include "sched/urgency.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"

namespace chasqui {
namespace {

constexpr TimePoint at(int ms) { return TimePoint{milliseconds(ms)}; }

struct Ask {
  ServiceClass service_class = ServiceClass::standard;
  int arrival_ms = 0;
  TokenCount prompt = 10;
  std::uint32_t tenant = 0;
  std::optional<std::int64_t> timeout_ms{};
  std::optional<std::int64_t> ttft_ms{};
  int target_ms = 0;
  std::uint32_t group = 0;
};

Sequence waiting(std::uint64_t id, const Ask& ask = {}) {
  RequestDraft draft;
  draft.prompt = test_prompt(ask.prompt, id);
  draft.service_class = ask.service_class;
  draft.tenant.id = ask.tenant;
  draft.timeout_ms = ask.timeout_ms;
  draft.ttft_ms = ask.ttft_ms;
  draft.ttft_target = milliseconds(ask.target_ms);
  draft.group = ask.group;
  RequestLimits limits = test_limits();
  limits.context = 10'000;
  return Sequence(test_request(id, std::move(draft), limits, at(ask.arrival_ms)));
}

class UrgencyTest : public testing::Test {
 protected:
  // Targets as they are by default: first tokens after 1, 5 and 30 s. One prompt token takes 1 ms.
  Urgency urgency(int now_ms, Duration backlog = {}, const SlotPolicy& policy = fair_policy()) const {
    return {targets, policy, counters, groups, overtaking, at(now_ms), backlog, 0.001};
  }

  SchedulerTargets targets;
  TenantCounters counters;
  GroupCounters groups;
  Overtaking overtaking;
};

// Or else the old queue of a tenant who floods us would go before everything that is new.
TEST_F(UrgencyTest, AgeLiftsNoRequestAboveAMoreUrgentClass) {
  const Sequence old_standard = waiting(1, {ServiceClass::standard, 0});
  const Sequence fresh_interactive = waiting(2, {ServiceClass::interactive, 24'000});
  const Urgency now = urgency(25'000);
  EXPECT_TRUE(now.slot_before(fresh_interactive, old_standard));
  EXPECT_TRUE(now.rows_before(fresh_interactive, old_standard));
}

TEST_F(UrgencyTest, ATargetOfItsOwnTakesThePlaceOfTheClasss) {
  Sequence early = waiting(1, {.arrival_ms = 0});
  const Sequence hasty = waiting(2, {.arrival_ms = 100, .target_ms = 500});
  const Sequence patient = waiting(3, {.arrival_ms = 0, .target_ms = 20'000});
  const Urgency now = urgency(200);
  EXPECT_TRUE(now.slot_before(hasty, early));
  EXPECT_TRUE(now.slot_before(early, patient)) << "one that can wait lets others go first";
  EXPECT_EQ(early.expires(), hasty.expires()) << "a target ends nothing";
}

TEST_F(UrgencyTest, OfATenantsGroupsTheOneThatGotLeastGoesFirst) {
  const Sequence many = waiting(1, {.arrival_ms = 0, .group = 7});
  const Sequence few = waiting(2, {.arrival_ms = 100, .group = 8});
  const Sequence other = waiting(3, {.arrival_ms = 50, .tenant = 9});
  for (const Sequence* each : {&many, &few, &other}) {
    counters.join(each->request().tenant);
    groups.join(each->request());
  }
  EXPECT_TRUE(urgency(200).slot_before(many, few)) << "who came first, while both have had the same";
  groups.charge_prompt(many.request(), 1000, 0);
  EXPECT_TRUE(urgency(200).slot_before(few, many));
  counters.charge_prompt(many.request().tenant, 1000);
  EXPECT_TRUE(urgency(200).slot_before(other, few)) << "what a tenant gets does not depend on its groups";
}

TEST_F(UrgencyTest, OnlyFirstComeFirstServedNeedsNoTurns) {
  EXPECT_TRUE(urgency(0).takes_turns());
  EXPECT_FALSE(urgency(0, {}, first_come_policy()).takes_turns()) << "the oldest is the first there anyway";
}

TEST_F(UrgencyTest, AMoreUrgentClassGoesFirstWhateverElseIsTrue) {
  const Sequence long_interactive = waiting(2, {.service_class = ServiceClass::interactive, .prompt = 9000});
  const Sequence old_standard = waiting(1, {.service_class = ServiceClass::standard, .prompt = 1});
  const Urgency now = urgency(100, seconds(100));
  EXPECT_TRUE(now.slot_before(long_interactive, old_standard));
  EXPECT_TRUE(now.rows_before(long_interactive, old_standard));
  EXPECT_FALSE(now.rows_before(old_standard, long_interactive));
}

TEST_F(UrgencyTest, WhileThereIsTimeTheEarliestDeadlineIsFirst) {
  const Sequence early_long = waiting(1, {.arrival_ms = 0, .prompt = 5000});
  const Sequence late_short = waiting(2, {.arrival_ms = 10, .prompt = 5});
  EXPECT_TRUE(urgency(20).rows_before(early_long, late_short));
  const Sequence hasty = waiting(3, {.arrival_ms = 10, .timeout_ms = 500});
  EXPECT_TRUE(urgency(20).rows_before(hasty, early_long)) << "its own deadline comes before the class's target";
}

TEST_F(UrgencyTest, ALimitOnTheFirstTokenIsWhenItIsDue) {
  const Sequence early = waiting(1, {.arrival_ms = 0});
  const Sequence hasty = waiting(2, {.arrival_ms = 100, .ttft_ms = 2000});
  const Sequence patient = waiting(3, {.arrival_ms = 0, .ttft_ms = 60'000});
  EXPECT_TRUE(urgency(200).slot_before(hasty, early));
  EXPECT_TRUE(urgency(200).rows_before(hasty, early));
  EXPECT_TRUE(urgency(200).slot_before(early, patient)) << "a limit beyond the target makes no request later";
  const Sequence other_class = waiting(4, {.service_class = ServiceClass::interactive, .arrival_ms = 150});
  EXPECT_TRUE(urgency(200).slot_before(other_class, hasty)) << "within a class only";
}

TEST_F(UrgencyTest, AnEqualYieldsToOneWhoseOwnLimitHasPassed) {
  Sequence running = waiting(1);
  running.start(SlotId{0}, at(0));
  const Sequence hasty = waiting(2, {.arrival_ms = 0, .ttft_ms = 2000});
  EXPECT_FALSE(urgency(1999).yields_to(running, hasty, seconds(1)));
  EXPECT_TRUE(urgency(2000).yields_to(running, hasty, seconds(1)));
  EXPECT_FALSE(urgency(2000).yields_to(running, waiting(3), seconds(1)));
}

TEST_F(UrgencyTest, OfThoseWhoseTurnHasComeTheOldestIsFirst) {
  Overtaking passing;
  WaitQueue line;
  for (std::uint64_t id : {1, 2, 3}) {
    RequestDraft draft;
    draft.prompt = test_prompt(id == 1 ? 500 : 5, id);
    RequestLimits limits = test_limits();
    limits.context = 10'000;
    line.push(std::make_unique<Sequence>(test_request(id, std::move(draft), limits, at(static_cast<int>(id)))));
  }
  const Sequence younger = waiting(9, {.arrival_ms = 50});
  for (int i = 0; i < Overtaking::kPassedMost; ++i) passing.starts(younger, line);
  const Urgency now(targets, fair_policy(), counters, groups, passing, at(60), seconds(5), 0.001);
  ASSERT_TRUE(now.of(*line.all()[0]).starved && now.of(*line.all()[1]).starved);
  EXPECT_TRUE(now.slot_before(*line.all()[0], *line.all()[1])) << "although it is much longer";
}

TEST_F(UrgencyTest, UnderLoadTheShortestWorkIsFirst) {
  const Sequence early_long = waiting(1, {.arrival_ms = 0, .prompt = 5000});
  const Sequence late_short = waiting(2, {.arrival_ms = 1000, .prompt = 5});
  EXPECT_TRUE(urgency(1000, seconds(5)).rows_before(late_short, early_long));
  EXPECT_TRUE(urgency(1000, seconds(5)).slot_before(late_short, early_long));
}

TEST_F(UrgencyTest, WorkCountsAsMuchAsTheLoad) {
  const Sequence early_long = waiting(1, {.arrival_ms = 0, .prompt = 1000});
  const Sequence late_short = waiting(2, {.arrival_ms = 500, .prompt = 5});
  EXPECT_TRUE(urgency(500, milliseconds(400)).rows_before(early_long, late_short));
  EXPECT_TRUE(urgency(500, milliseconds(600)).rows_before(late_short, early_long));
  EXPECT_TRUE(urgency(500, milliseconds(1001)).rows_before(late_short, early_long)) << "more than the target";
  const Sequence as_short = waiting(3, {.arrival_ms = 400, .prompt = 5});
  EXPECT_TRUE(urgency(500, seconds(5)).rows_before(as_short, late_short)) << "among equals the one that is due first";
}

TEST_F(UrgencyTest, ALongPromptIsPassedForASlotOnlyForEightTimesItsReadingTime) {
  const Sequence long_one = waiting(1, {.arrival_ms = 0, .prompt = 1000});
  for (std::uint64_t second = 1; second < 60; ++second) {
    const int now = static_cast<int>(second) * 1000;
    const Sequence fresh = waiting(1 + second, {.arrival_ms = now, .prompt = 5});
    EXPECT_EQ(urgency(now, seconds(1000)).slot_before(long_one, fresh), second >= 8);
    EXPECT_TRUE(urgency(now, seconds(1000)).rows_before(fresh, long_one)) << "it has turns instead, see StepPlan";
  }
}

TEST_F(UrgencyTest, OfTwoAlikeTheFirstComerIsFirst) {
  const Sequence a = waiting(1), b = waiting(2);
  EXPECT_TRUE(urgency(0).slot_before(a, b));
  EXPECT_FALSE(urgency(0).slot_before(b, a));
  EXPECT_FALSE(urgency(0).slot_before(a, a));
  EXPECT_FALSE(urgency(0).rows_before(a, a));
}

TEST_F(UrgencyTest, WithinAClassASlotGoesToTheTenantWithTheLeastService) {
  const Sequence greedy = waiting(1, {.tenant = 1});
  const Sequence modest = waiting(2, {.arrival_ms = 900, .tenant = 2});
  counters.join({1, 1});
  counters.join({2, 1});
  EXPECT_TRUE(urgency(1000).slot_before(greedy, modest)) << "both have had nothing";
  counters.charge_prompt({1, 1}, 10);
  EXPECT_TRUE(urgency(1000).slot_before(modest, greedy));
  EXPECT_TRUE(urgency(1000).rows_before(greedy, modest)) << "who has a slot already is not put off";
  const Sequence urgent = waiting(3, {.service_class = ServiceClass::interactive, .tenant = 1});
  EXPECT_TRUE(urgency(1000).slot_before(urgent, modest)) << "the class counts more";
}

// Of what runs: from `since_ms` on.
Sequence running(std::uint64_t id, const Ask& ask, int since_ms = 0) {
  Sequence sequence = waiting(id, ask);
  sequence.start(SlotId{0}, at(since_ms));
  return sequence;
}

TEST_F(UrgencyTest, AMoreUrgentClassTakesASlotAtOnce) {
  const Sequence background = running(1, {ServiceClass::background});
  const Sequence standard = running(2, {ServiceClass::standard});
  const Urgency now = urgency(1);
  EXPECT_TRUE(now.yields_to(background, waiting(3, {ServiceClass::standard}), seconds(1)));
  EXPECT_TRUE(now.yields_to(standard, waiting(4, {ServiceClass::interactive}), seconds(1)));
  EXPECT_FALSE(now.yields_to(standard, waiting(5, {ServiceClass::standard}), seconds(1)));
  EXPECT_FALSE(urgency(1'000'000).yields_to(standard, waiting(6, {ServiceClass::background}), seconds(1)));
  Sequence lucky = waiting(7, {ServiceClass::background});
  lucky.start(SlotId{0}, at(0), true);
  EXPECT_FALSE(now.yields_to(lucky, waiting(8, {ServiceClass::interactive}), seconds(1))) << "it was passed for long";
  EXPECT_TRUE(urgency(1000).yields_to(lucky, waiting(9, {ServiceClass::interactive}), seconds(1)));
}

TEST_F(UrgencyTest, ATenantThatWasServedMoreGivesUpASlotAfterASlice) {
  counters.join({1, 1});
  counters.join({2, 1});
  const Sequence greedy = running(1, {.tenant = 1});
  const Sequence modest = waiting(2, {.arrival_ms = 10, .tenant = 2});
  EXPECT_FALSE(urgency(2000).yields_to(greedy, modest, seconds(1))) << "both were served alike";
  for (int i = 0; i < 64; ++i) counters.charge_token({1, 1});
  EXPECT_TRUE(urgency(2000).yields_to(greedy, modest, seconds(1)));
  EXPECT_FALSE(urgency(999).yields_to(greedy, modest, seconds(1))) << "its slice";
}

TEST_F(UrgencyTest, EqualsTakeTurnsOnceOneHasWaitedForItsTarget) {
  const Sequence first = running(1, {});
  const Sequence second = waiting(2, {.arrival_ms = 100});
  EXPECT_FALSE(urgency(5'000).yields_to(first, second, seconds(1)));
  EXPECT_TRUE(urgency(5'100).yields_to(first, second, seconds(1)));
  EXPECT_FALSE(urgency(5'100).yields_to(first, second, seconds(8)));
}

TEST_F(UrgencyTest, TheLongestInItsSlotYieldsFirstOfTheLeastUrgent) {
  const Sequence early = running(1, {}, 0);
  const Sequence late = running(2, {}, 100);
  const Sequence background = running(3, {ServiceClass::background}, 200);
  const Urgency now = urgency(1000);
  EXPECT_TRUE(now.yields_before(early, late));
  EXPECT_TRUE(now.yields_before(background, early));
  EXPECT_FALSE(now.yields_before(early, early));
}

TEST_F(UrgencyTest, FirstComeFirstServedKnowsNothingElse) {
  counters.join({1, 1});
  counters.charge_prompt({1, 1}, 1000);
  const Sequence first = waiting(1, {ServiceClass::background, 0, 5000, 1});
  const Sequence second = waiting(2, {ServiceClass::interactive, 10, 5, 2});
  const Urgency now = urgency(20, seconds(100), first_come_policy());
  EXPECT_TRUE(now.slot_before(first, second));
  EXPECT_TRUE(now.rows_before(first, second));
  EXPECT_FALSE(now.yields_to(running(1, {ServiceClass::background}), second, Duration::zero()));
}

}  // namespace
}  // namespace chasqui
