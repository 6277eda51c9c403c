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
};

Sequence waiting(std::uint64_t id, const Ask& ask = {}) {
  RequestDraft draft;
  draft.prompt = test_prompt(ask.prompt, id);
  draft.service_class = ask.service_class;
  draft.tenant.id = ask.tenant;
  draft.timeout_ms = ask.timeout_ms;
  RequestLimits limits = test_limits();
  limits.context = 10'000;
  return Sequence(test_request(id, std::move(draft), limits, at(ask.arrival_ms)));
}

class UrgencyTest : public testing::Test {
 protected:
  // Targets as they are by default: first tokens after 1, 5 and 30 s. One prompt token takes 1 ms.
  Urgency urgency(int now_ms, Duration backlog = {}, Policy policy = Policy::chasqui) const {
    return {targets, policy, counters, at(now_ms), backlog, 0.001};
  }

  SchedulerTargets targets;
  TenantCounters counters;
};

TEST_F(UrgencyTest, TheLevelIsTheClassAtFirst) {
  EXPECT_EQ(urgency(0).level(waiting(1, {ServiceClass::interactive})), 0);
  EXPECT_EQ(urgency(0).level(waiting(1, {ServiceClass::standard})), 1);
  EXPECT_EQ(urgency(0).level(waiting(1, {ServiceClass::background})), 2);
}

TEST_F(UrgencyTest, TheLevelFallsEachTimeThatPatienceRunsOut) {
  const Sequence background = waiting(1, {ServiceClass::background, 1000});
  EXPECT_EQ(urgency(1000 + 119'999).level(background), 2) << "4 x 30 s";
  EXPECT_EQ(urgency(1000 + 120'000).level(background), 1);
  EXPECT_EQ(urgency(1000 + 239'999).level(background), 1);
  EXPECT_EQ(urgency(1000 + 240'000).level(background), 0);
  EXPECT_EQ(urgency(2'000'000'000).level(background), 0) << "there is nothing better";
  const Sequence standard = waiting(2, {ServiceClass::standard, 1000});
  EXPECT_EQ(urgency(1000 + 20'000).level(standard), 0) << "4 x 5 s";
}

TEST_F(UrgencyTest, ATargetOfZeroIsNoDivisionByZero) {
  for (ClassTarget& target : targets.of) target = {};
  EXPECT_EQ(urgency(500).level(waiting(1, {ServiceClass::background})), 0);
}

TEST_F(UrgencyTest, PatienceEndsAfterFourTimesTheTarget) {
  const Sequence standard = waiting(1, {ServiceClass::standard, 1000});
  EXPECT_FALSE(urgency(1000 + 19'999).out_of_patience(standard));
  EXPECT_TRUE(urgency(1000 + 20'000).out_of_patience(standard));
}

// Or else the old queue of a tenant who floods us would go before everything that is new.
TEST_F(UrgencyTest, AgeLiftsNobodyAboveAMoreUrgentClass) {
  const Sequence old_standard = waiting(1, {ServiceClass::standard, 0});
  const Sequence fresh_interactive = waiting(2, {ServiceClass::interactive, 24'000});
  const Urgency now = urgency(25'000);
  ASSERT_EQ(now.level(old_standard), now.level(fresh_interactive)) << "it keeps what it has";
  EXPECT_TRUE(now.slot_before(fresh_interactive, old_standard));
  EXPECT_TRUE(now.rows_before(fresh_interactive, old_standard));
}

TEST_F(UrgencyTest, OnlyFirstComeFirstServedNeedsNoTurns) {
  EXPECT_TRUE(urgency(0).takes_turns());
  EXPECT_FALSE(urgency(0, {}, Policy::fcfs).takes_turns()) << "the oldest is the first there anyway";
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

TEST_F(UrgencyTest, UnderLoadTheShortestWorkIsFirst) {
  const Sequence early_long = waiting(1, {.arrival_ms = 0, .prompt = 5000});
  const Sequence late_short = waiting(2, {.arrival_ms = 1000, .prompt = 5});
  EXPECT_TRUE(urgency(1000, seconds(5)).rows_before(late_short, early_long));
  EXPECT_TRUE(urgency(1000, seconds(5)).slot_before(late_short, early_long));
}

// A second of reading is what the most urgent class waits for its first token.
TEST_F(UrgencyTest, ItIsLoadWhenThereIsMoreToReadThanAnybodyWantsToWaitFor) {
  const Sequence early_long = waiting(1, {.arrival_ms = 0, .prompt = 100});
  const Sequence late_short = waiting(2, {.arrival_ms = 500, .prompt = 5});
  EXPECT_TRUE(urgency(500, milliseconds(1000)).rows_before(early_long, late_short));
  EXPECT_TRUE(urgency(500, milliseconds(1001)).rows_before(late_short, early_long));
  const Sequence as_short = waiting(3, {.arrival_ms = 400, .prompt = 5});
  EXPECT_TRUE(urgency(500, seconds(5)).rows_before(as_short, late_short)) << "among equals who is due first";
}

TEST_F(UrgencyTest, AgeGetsALongPromptASlotInAStreamOfShortOnesButNoRows) {
  const Sequence long_one = waiting(1, {.arrival_ms = 0, .prompt = 1000});
  bool passed = false;
  for (std::uint64_t second = 1; second < 60; ++second) {
    const int now = static_cast<int>(second) * 1000;
    const Sequence fresh = waiting(1 + second, {.arrival_ms = now, .prompt = 5});
    passed |= urgency(now, seconds(1000)).slot_before(long_one, fresh);
    EXPECT_TRUE(passed || second < 20) << "8 times its reading time, or patience, whatever comes first";
    EXPECT_FALSE(passed && second < 5) << "at first the short ones go";
    EXPECT_TRUE(urgency(now, seconds(1000)).rows_before(fresh, long_one)) << "it has turns instead, see StepPlan";
  }
  EXPECT_TRUE(passed);
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

TEST_F(UrgencyTest, OnlyBackgroundWorkYieldsAndOnlyToABetterLevel) {
  const Sequence interactive = waiting(1, {ServiceClass::interactive});
  const Sequence standard = waiting(2, {ServiceClass::standard});
  const Sequence background = waiting(3, {ServiceClass::background});
  const Urgency now = urgency(0);
  EXPECT_TRUE(now.yields_to(background, interactive));
  EXPECT_TRUE(now.yields_to(background, standard));
  EXPECT_FALSE(now.yields_to(background, waiting(4, {ServiceClass::background})));
  EXPECT_FALSE(now.yields_to(standard, interactive));
  EXPECT_FALSE(now.yields_to(interactive, background));
  const Sequence fresh = waiting(5, {ServiceClass::interactive, 119'000});
  EXPECT_TRUE(urgency(119'999).yields_to(background, fresh));
  EXPECT_FALSE(urgency(120'000).yields_to(background, fresh)) << "out of patience";
}

TEST_F(UrgencyTest, FirstComeFirstServedKnowsNothingElse) {
  counters.join({1, 1});
  counters.charge_prompt({1, 1}, 1000);
  const Sequence first = waiting(1, {ServiceClass::background, 0, 5000, 1});
  const Sequence second = waiting(2, {ServiceClass::interactive, 10, 5, 2});
  const Urgency now = urgency(20, seconds(100), Policy::fcfs);
  EXPECT_TRUE(now.slot_before(first, second));
  EXPECT_TRUE(now.rows_before(first, second));
  EXPECT_FALSE(now.yields_to(first, second));
}

}  // namespace
}  // namespace chasqui
