// Who goes first: classes, age, tenants, and preemption for a slot.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

using Parts = FakeWorker::Parts;

TEST(SchedulerClasses, UrgentClassesStartFirstAndWithinAClassTheFirstComer) {
  FakeWorker worker(streams(1));
  worker.add(1, {.service_class = kBackground});
  worker.add(2, {.service_class = kStandard});
  worker.add(3, {.service_class = kStandard});
  worker.add(4, {.service_class = kInteractive});
  worker.run_to_end();
  EXPECT_EQ(worker.ending, (std::vector<std::uint64_t>{4, 2, 3, 1}));
}

TEST(SchedulerClasses, FirstComeFirstServedIsAPolicyToCompareWith) {
  SchedulerConfig config = streams(1);
  config.policy = &first_come_policy();
  FakeWorker worker(config);
  worker.add(1, {.max_tokens = 30, .service_class = kBackground});
  worker.add(2, {.service_class = kStandard});
  worker.add(3, {.service_class = kInteractive, .tenant = 1});
  worker.run_to_end();
  EXPECT_EQ(worker.ending, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(worker.scheduler.preemptions(), 0u);
}

TEST(SchedulerClasses, UrgentClassesAreReadFirst) {
  FakeWorker worker(streams(2, 32));
  worker.add(1, {.prompt = 90, .service_class = kStandard});
  ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 32, .service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{2, 32}}));
}

TEST(SchedulerClasses, WhileThereIsTimeTheFirstComerIsReadToItsEnd) {
  FakeWorker worker(streams(2, 32));
  worker.add(1, {.prompt = 90});
  ASSERT_TRUE(worker.step());
  worker.clock.advance(milliseconds(50));
  worker.add(2, {.prompt = 10});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.parts, (Parts{{1, 32}})) << "90 rows at 1 ms are no load";
}

TEST(SchedulerClasses, UnderLoadAShortPromptOvertakesALongOneThatIsBeingRead) {
  FakeWorker worker(streams(2, 32, 2000));
  worker.row_cost = milliseconds(4);
  worker.add(1, {.prompt = 1500});
  ASSERT_TRUE(worker.step());
  ASSERT_TRUE(worker.step());
  worker.clock.advance(milliseconds(200));
  worker.add(2, {.prompt = 10});
  for (int i = 0; i < 2 && worker.of(2).tokens == 0; ++i) ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.of(2).tokens, 1);
  worker.run_to_end();
  EXPECT_EQ(worker.ending, (std::vector<std::uint64_t>{2, 1}));
}

TEST(SchedulerClasses, ALongPromptIsNotPassedByShortOnesForEver) {
  FakeWorker worker(streams(2, 64, 1000));
  worker.row_cost = milliseconds(4);
  worker.add(1, {.prompt = 900, .max_tokens = 1});
  std::uint64_t id = 1;
  // Two slots, and always a short request for the other one: more work than there is time for.
  while (!worker.finished(1)) {
    if (worker.scheduler.waiting() == 0) worker.add(++id, {.prompt = 60, .max_tokens = 1});
    ASSERT_TRUE(worker.step());
    ASSERT_LT(id, 500u);
  }
  EXPECT_GT(id, 20u) << "they did pass it";
}

TEST(SchedulerClasses, InteractiveTakesTheSlotOfBackgroundWhichGoesOnLaterWithTheSameText) {
  FakeWorker worker(streams(1));
  worker.add(1, {.max_tokens = 40, .service_class = kBackground});
  while (worker.of(1).tokens < 10) ASSERT_TRUE(worker.step());
  worker.add(2, {.max_tokens = 5, .service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  EXPECT_TRUE(worker.has_part(2)) << "at once";
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
  EXPECT_EQ(worker.scheduler.waiting(), 1u);
  worker.run_to_end();
  EXPECT_EQ(worker.ending, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
  EXPECT_EQ(worker.of(1).tokens, 40) << "each token was said once";
  EXPECT_EQ(worker.model.preempted(), 1u);
}

TEST(SchedulerClasses, APreemptedRequestCanBeCancelledAndMayRunOutOfTime) {
  FakeWorker worker(streams(2));
  worker.add(1, {.max_tokens = -1, .service_class = kBackground});
  worker.add(2, {.max_tokens = -1, .service_class = kBackground, .timeout_ms = 40});
  while (worker.of(2).tokens < 5) ASSERT_TRUE(worker.step());
  worker.add(3, {.max_tokens = 60, .service_class = kInteractive});
  worker.add(4, {.max_tokens = 60, .service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  ASSERT_EQ(worker.scheduler.preemptions(), 2u);
  worker.cancel(1);
  EXPECT_EQ(worker.reason(1), FinishReason::cancelled);
  worker.run_to_end();
  EXPECT_EQ(worker.reason(2), FinishReason::deadline);
  EXPECT_GE(worker.of(2).tokens, 5);
}

TEST(SchedulerClasses, TheLeastUrgentLosesItsSlotFirstAndNoneToItsOwnClass) {
  FakeWorker worker(streams(3));
  worker.add(1, {.max_tokens = 60, .service_class = kBackground});
  worker.add(2, {.max_tokens = 60, .service_class = kStandard});
  worker.add(3, {.max_tokens = 60, .service_class = kBackground});
  while (worker.of(3).tokens < 3) ASSERT_TRUE(worker.step());
  worker.add(4, {.max_tokens = 60, .service_class = kInteractive});
  worker.add(5, {.max_tokens = 60, .service_class = kInteractive});
  while (worker.of(5).tokens < 3) ASSERT_TRUE(worker.step());
  EXPECT_TRUE(worker.has_part(2)) << "both in the background have gone";
  worker.add(6, {.service_class = kInteractive});
  worker.add(7, {.service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.preemptions(), 3u) << "7 waits: all three are as urgent as it";
  worker.run_to_end();
}

TEST(SchedulerClasses, ATenantWithTenTimesTheRequestsGetsTheSameSlots) {
  FakeWorker worker(streams(1));
  for (std::uint64_t id = 1; id <= 50; ++id) worker.add(id, {.tenant = 1});
  for (std::uint64_t id = 51; id <= 55; ++id) worker.add(id, {.tenant = 2});
  while (worker.ending.size() < 10) ASSERT_TRUE(worker.step());
  const auto of_second = std::count_if(worker.ending.begin(), worker.ending.end(), [](auto id) { return id > 50; });
  EXPECT_EQ(of_second, 5);
  worker.run_to_end();
}

TEST(SchedulerClasses, AGroupWithTenTimesTheRequestsGetsTheSameSlotsOfItsTenant) {
  FakeWorker worker(streams(1));
  for (std::uint64_t id = 1; id <= 50; ++id) worker.add(id, {.group = 1});
  for (std::uint64_t id = 51; id <= 55; ++id) worker.add(id, {.group = 2});
  while (worker.ending.size() < 10) ASSERT_TRUE(worker.step());
  const auto of_second = std::count_if(worker.ending.begin(), worker.ending.end(), [](auto id) { return id > 50; });
  EXPECT_EQ(of_second, 5);
  worker.run_to_end();
}

TEST(SchedulerClasses, ATenantGetsNoMoreByHavingGroups) {
  FakeWorker worker(streams(1));
  for (std::uint64_t id = 1; id <= 50; ++id) worker.add(id, {.tenant = 1, .group = static_cast<std::uint32_t>(id)});
  for (std::uint64_t id = 51; id <= 55; ++id) worker.add(id, {.tenant = 2});
  while (worker.ending.size() < 10) ASSERT_TRUE(worker.step());
  const auto of_second = std::count_if(worker.ending.begin(), worker.ending.end(), [](auto id) { return id > 50; });
  EXPECT_EQ(of_second, 5);
  worker.run_to_end();
}

TEST(SchedulerClasses, SlotsThatAreFreeAtOnceAreSharedBetweenTenants) {
  FakeWorker worker(streams(4));
  for (std::uint64_t id = 1; id <= 8; ++id) worker.add(id, {.prompt = 8, .max_tokens = 20, .tenant = 1});
  for (std::uint64_t id = 11; id <= 18; ++id) worker.add(id, {.prompt = 8, .max_tokens = 20, .tenant = 2});
  ASSERT_TRUE(worker.step());
  ASSERT_EQ(worker.parts.size(), 4u);
  EXPECT_TRUE(worker.has_part(1) && worker.has_part(2) && worker.has_part(11) && worker.has_part(12));
  worker.run_to_end();
}

TEST(SchedulerClasses, TheOldQueueOfAFlooderDoesNotGoBeforeALightTenant) {
  FakeWorker worker(streams(1));
  worker.row_cost = milliseconds(100);  // about 1.2 s for each request
  for (std::uint64_t id = 1; id <= 60; ++id) worker.add(id, {.tenant = 1});
  worker.run_until_finished(25);  // the rest has waited for longer than its patience
  worker.add(101, {.tenant = 2});
  worker.add(102, {.tenant = 2});
  worker.ending.clear();
  while (worker.ending.size() < 5) ASSERT_TRUE(worker.step());
  EXPECT_TRUE(worker.finished(101) && worker.finished(102));
  worker.run_to_end();
}

TEST(SchedulerClasses, AnInteractiveRequestGoesBeforeAnOldQueueOfALesserClass) {
  FakeWorker worker(streams(1));
  worker.row_cost = milliseconds(100);
  for (std::uint64_t id = 1; id <= 60; ++id) worker.add(id, {.service_class = kStandard});
  worker.run_until_finished(25);
  for (std::uint64_t id = 101; id <= 110; ++id) {
    worker.add(id, {.service_class = kInteractive});
    worker.ending.clear();
    while (!worker.finished(id)) ASSERT_TRUE(worker.step());
    EXPECT_LE(worker.ending.size(), 3u) << "after the one that runs, and one whose turn it is";
  }
  worker.run_to_end();
}

TEST(SchedulerClasses, ALesserClassGetsASlotWhenItWasPassedOftenEnough) {
  for (const ServiceClass lesser : {kStandard, kBackground}) {
    FakeWorker worker(streams(1));
    worker.row_cost = milliseconds(100);
    worker.add(100, {.service_class = kInteractive});
    ASSERT_TRUE(worker.step());
    for (std::uint64_t id = 1; id <= 3; ++id) worker.add(id, {.service_class = lesser});
    std::uint64_t id = 100;
    std::vector<std::uint64_t> passed;
    while (passed.size() < 3) {
      while (worker.scheduler.waiting() < 6) worker.add(++id, {.service_class = kInteractive});
      ASSERT_TRUE(worker.step());
      const auto done = static_cast<std::size_t>(
          std::count_if(worker.ending.begin(), worker.ending.end(), [](auto e) { return e < 100; }));
      if (done > passed.size()) passed.push_back(worker.ending.size() - done);
      ASSERT_LT(id, 1000u) << "starved";
    }
    EXPECT_NEAR(static_cast<double>(passed[0]), Overtaking::kPassedMost, 6);
    EXPECT_NEAR(static_cast<double>(passed[2] - passed[1]), Overtaking::kPassedMost, 2) << "then the others again";
    worker.run_to_end();
  }
}

// It would go behind those that came after it each time, and never begin.
TEST(SchedulerClasses, OneThatLosesItsSlotBeforeItsFirstRowKeepsItsPlaceInTheLine) {
  FakeWorker worker(streams(1, 16));
  worker.add(1, {.service_class = kBackground});
  worker.add(2, {.service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  worker.add(3, {.service_class = kBackground});
  worker.cancel(2);
  ASSERT_TRUE(worker.step(DecodeStatus::aborted));  // 1 has a slot now, and nothing is computed of it
  ASSERT_EQ(worker.scheduler.running(), 1u);
  worker.clock.advance(seconds(1));
  worker.add(4, {.service_class = kInteractive});
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
  EXPECT_EQ(worker.ending, (std::vector<std::uint64_t>{2, 4, 1, 3}));
}

// Copies are cheap here, so a slice is a second, and eight where both are the same tenant's.
TEST(SchedulerClasses, ASlotGoesRoundAmongTenants) {
  FakeWorker worker(with_cache(streams(2, 32, 2000)));
  worker.row_cost = milliseconds(10);
  for (std::uint64_t id = 1; id <= 8; ++id) worker.add(id, {.max_tokens = 1500, .tenant = 1});
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(worker.step());
  worker.add(10, {.max_tokens = 1500, .tenant = 2});
  const TimePoint came = worker.clock.now();
  while (worker.of(10).tokens == 0) ASSERT_TRUE(worker.step());
  EXPECT_LE(worker.clock.now() - came, seconds(2)) << "the other tenant has had both slots for longer than a slice";
  worker.run_until_finished(10);
  const auto others = [&] {
    TokenCount tokens = 0;
    for (std::uint64_t id = 1; id <= 8; ++id) tokens += worker.of(id).tokens;
    return tokens;
  };
  EXPECT_GT(others(), 1500) << "the other slot was theirs all the time";
  worker.run_to_end();
  for (std::uint64_t id = 1; id <= 8; ++id) EXPECT_EQ(worker.of(id).tokens, 1500) << id;
}

// What copies cost does not grow with the slots of those who have them, but with how often one is given up.
TEST(SchedulerClasses, ATenantWaitsASliceForOneOfManySlotsWhoseCopiesTakeLong) {
  SchedulerConfig config = with_cache(streams(16, 64, 3000), 1 << 30);
  config.reuse.kv_token_bytes = 10'000;
  FakeWorker worker(config);
  worker.row_cost = milliseconds(1);
  for (std::uint64_t id = 1; id <= 16; ++id) worker.add(id, {.prompt = 900, .max_tokens = 2000, .tenant = 1});
  while (worker.of(16).tokens < 10) ASSERT_TRUE(worker.step());
  const TimePoint came = worker.clock.now();
  worker.add(20, {.prompt = 20, .max_tokens = 10, .tenant = 2});
  while (worker.of(20).tokens == 0) ASSERT_TRUE(worker.step());
  EXPECT_LE(worker.clock.now() - came, milliseconds(1500)) << "the slices of the others were over";
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
}

TEST(SchedulerClasses, EqualsTakeTurnsInASlot) {
  FakeWorker worker(with_cache(streams(1, 32, 4000)));
  worker.row_cost = milliseconds(10);
  worker.add(1, {.max_tokens = 3000});
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(worker.step());
  worker.add(2, {.max_tokens = 3000});
  while (worker.of(2).tokens == 0) ASSERT_TRUE(worker.step());
  EXPECT_FALSE(worker.finished(1));
  EXPECT_LE(worker.clock.now() - TimePoint{}, seconds(10));
  worker.run_to_end();
  EXPECT_GE(worker.scheduler.preemptions(), 4u);
  EXPECT_EQ(worker.of(1).tokens + worker.of(2).tokens, 6000);
}

TEST(SchedulerClasses, WhereNoCopyIsKeptASlotIsNotTakenFromOneThatWouldHaveToComputeMuchAgain) {
  FakeWorker worker(streams(1, 32, 4000));
  worker.row_cost = milliseconds(10);
  worker.add(1, {.prompt = 1000, .max_tokens = 1000});
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(worker.step());
  worker.add(2, {.max_tokens = 10});
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.preemptions(), 0u);
}

TEST(SchedulerClasses, WhatIsReadAgainAfterAPreemptionIsNotChargedAgain) {
  FakeWorker worker(streams(1));
  worker.add(1, {.prompt = 90, .max_tokens = 1, .service_class = kBackground, .tenant = 2});
  worker.add(2, {.prompt = 60, .max_tokens = 5, .service_class = kBackground, .tenant = 1});
  while (worker.of(2).tokens < 2) ASSERT_TRUE(worker.step());
  worker.add(3, {.prompt = 5, .max_tokens = 1, .service_class = kBackground, .tenant = 2});
  worker.add(4, {.prompt = 5, .max_tokens = 1, .service_class = kBackground, .tenant = 1});
  worker.add(5, {.service_class = kInteractive, .tenant = 3});
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.preemptions(), 1u);
  EXPECT_EQ(worker.ending, (std::vector<std::uint64_t>{1, 5, 2, 4, 3})) << "60 and 5 tokens are less than 90";
}

TEST(SchedulerClasses, ATenantThatWasAwayHasNoCredit) {
  FakeWorker worker(streams(1));
  for (std::uint64_t id = 1; id <= 20; ++id) worker.add(id, {.tenant = 1});
  worker.run_until_finished(10);
  for (std::uint64_t id = 101; id <= 110; ++id) worker.add(id, {.tenant = 2});
  worker.ending.clear();
  while (worker.ending.size() < 10) ASSERT_TRUE(worker.step());
  const auto of_second = std::count_if(worker.ending.begin(), worker.ending.end(), [](auto id) { return id > 100; });
  EXPECT_NEAR(static_cast<double>(of_second), 5, 1) << "turns from now on, not ten at once";
  worker.run_to_end();
}

}  // namespace
}  // namespace chasqui
