// Nothing is computed twice: prompts that begin alike, one after the other and at the same time, and who may share.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

SchedulerConfig cached_streams(std::int32_t slots = 6, std::size_t bytes = 1 << 20) {
  return with_cache(streams(slots, 32, 400), bytes);
}

// Requests first … last, each with 10 tokens after the same 90.
void add_forks(FakeWorker& worker, std::uint64_t first, std::uint64_t last, std::int64_t max_tokens = 3) {
  for (std::uint64_t id = first; id <= last; ++id) {
    worker.add(id, {.prompt = 100, .max_tokens = max_tokens, .shared = 90});
  }
}

TEST(SchedulerReuse, ASecondRequestWithTheSamePromptComputesOneToken) {
  FakeWorker worker(cached_streams());
  for (const std::uint64_t id : {1, 2}) {
    worker.add(id, {.prompt = 100, .max_tokens = 5, .shared = 100});
    worker.run_to_end();
  }
  EXPECT_EQ(worker.cached(1), 0);
  EXPECT_EQ(worker.cached(2), 99) << "its last token is computed, for the logits";
  EXPECT_EQ(worker.model.prompt_rows(2), 1);
  EXPECT_EQ(worker.of(1).text, worker.of(2).text);
}

TEST(SchedulerReuse, TheNextTurnComputesWhatIsNewAndTheAnswersLastToken) {
  FakeWorker worker(cached_streams());
  worker.add(1, 100, 5);
  worker.run_to_end();
  worker.add_turn(2, 1, 10, 5);
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2), 104);
  EXPECT_EQ(worker.model.prompt_rows(2), 11);
  worker.add_turn(3, 2, 10, 5);
  worker.run_to_end();
  EXPECT_EQ(worker.model.prompt_rows(3), 11);
  EXPECT_EQ(worker.scheduler.reuse().cache_stats().entries, 1u) << "the longest turn stands for all";
}

TEST(SchedulerReuse, ABranchComputesOnlyWhatIsItsOwn) {
  FakeWorker worker(cached_streams());
  for (const std::uint64_t id : {1, 2, 3}) {
    add_forks(worker, id, id);
    worker.run_to_end();
  }
  EXPECT_EQ(worker.cached(2), 90);
  EXPECT_EQ(worker.model.prompt_rows(2), 10);
  EXPECT_EQ(worker.model.prompt_rows(3), 10);
}

TEST(SchedulerReuse, AFewTokensInCommonAreBroughtBackToo) {
  FakeWorker worker(cached_streams());
  worker.add(1, {.prompt = 20, .shared = 9});
  worker.run_to_end();
  worker.add(2, {.prompt = 20, .shared = 9});
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2), 9);
}

TEST(SchedulerReuse, NoPrefixTokenIsComputedTwiceForManyForks) {
  FakeWorker worker(cached_streams());
  add_forks(worker, 1, 1, 100);
  ASSERT_TRUE(worker.step());
  add_forks(worker, 2, 5);
  for (int steps = 0; steps < 2; ++steps) {  // rows 33 … 96 of the first
    ASSERT_TRUE(worker.step());
    EXPECT_EQ(worker.scheduler.running(), 1u);
    EXPECT_EQ(worker.scheduler.waiting(), 4u);
  }
  ASSERT_TRUE(worker.step());
  EXPECT_TRUE(worker.batch.rows.empty());
  EXPECT_EQ(worker.batch.saves.size(), 1u) << "as soon as it is computed, while the first goes on";
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.batch.restores.size(), 4u);
  EXPECT_EQ(worker.scheduler.running(), 5u);
  EXPECT_FALSE(worker.finished(1));
  worker.run_to_end();
  EXPECT_EQ(worker.model.prompt_rows(), 100u + 4 * 10);
  for (std::uint64_t id = 2; id <= 5; ++id) EXPECT_EQ(worker.cached(id), 90);
  EXPECT_EQ(worker.scheduler.reuse().waits_begun(), 4u);
}

TEST(SchedulerReuse, ForksOfARequestThatIsAnsweringAlreadyWaitForNoneOfItsTokens) {
  FakeWorker worker(cached_streams());
  add_forks(worker, 1, 1, 200);
  while (worker.of(1).tokens < 5) ASSERT_TRUE(worker.step());
  add_forks(worker, 2, 5);
  ASSERT_TRUE(worker.step());  // they ask for it
  ASSERT_TRUE(worker.step());  // … it is copied
  EXPECT_EQ(worker.batch.saves.size(), 1u);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.batch.restores.size(), 4u);
  worker.run_to_end();
  EXPECT_EQ(worker.model.prompt_rows(), 100u + 4 * 10);
}

TEST(SchedulerReuse, ARequestThatSharesLittleDoesNotWait) {
  FakeWorker worker(cached_streams());
  worker.add(1, {.prompt = 100, .max_tokens = 3, .shared = 31});
  ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 100, .max_tokens = 3, .shared = 31});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 2u);
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.reuse().waits_begun(), 0u);
}

TEST(SchedulerReuse, OthersStartWhileARequestWaitsForAPrefix) {
  FakeWorker worker(cached_streams(2));
  add_forks(worker, 1, 2);
  worker.add(3, 20, 3);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 2u);
  EXPECT_EQ(worker.scheduler.waiting(), 1u);
  worker.run_to_end();
  EXPECT_EQ(worker.ending.back(), 2u);
}

TEST(SchedulerReuse, OthersStartInTheirOrderBehindABurstThatWaits) {
  FakeWorker worker(cached_streams(4));
  add_forks(worker, 1, 30);
  for (std::uint64_t id = 31; id <= 34; ++id) worker.add(id, {.prompt = 20, .max_tokens = 3});
  worker.add(35, {.prompt = 20, .max_tokens = 3, .service_class = kInteractive});
  ASSERT_TRUE(worker.step());
  std::vector<std::uint64_t> started;
  for (const auto& sequence : worker.scheduler.running_sequences()) started.push_back(sequence->id().value);
  EXPECT_EQ(started, (std::vector<std::uint64_t>{35, 1, 31, 32}));
  worker.run_to_end();
}

// As the policy of a server, and counts how often two that wait are compared.
class CountingPolicy final : public SlotPolicy {
 public:
  bool slot_before(const Standing& a, const Standing& b, const PolicyStep& step) const override {
    ++compared;
    return fair_policy().slot_before(a, b, step);
  }
  bool rows_before(const Standing& a, const Standing& b, const PolicyStep& step) const override {
    return fair_policy().rows_before(a, b, step);
  }
  bool yields_to(const Standing& running, const Standing& waiting, Duration slice,
                 const PolicyStep& step) const override {
    return fair_policy().yields_to(running, waiting, slice, step);
  }
  bool takes_turns(const PolicyRules& rules) const override { return fair_policy().takes_turns(rules); }
  mutable std::uint64_t compared = 0;
};

TEST(SchedulerReuse, ABurstThatWaitsForOnePrefixIsLookedThroughAFewTimesOnly) {
  const CountingPolicy policy;
  SchedulerConfig config = cached_streams();
  config.policy = &policy;
  FakeWorker worker(config);
  constexpr std::uint64_t kBurst = 1000;
  add_forks(worker, 1, kBurst);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 1u);
  EXPECT_EQ(worker.scheduler.reuse().waits_begun(), kBurst - 1);
  EXPECT_LT(policy.compared, 60 * kBurst) << "not the square of it: the next step would be late";
}

TEST(SchedulerReuse, InteractiveWorkDoesNotWaitForWhatBackgroundWorkGetsRoundTo) {
  for (const bool urgent_first : {false, true}) {
    FakeWorker worker(cached_streams());
    const ServiceClass first = urgent_first ? kInteractive : kBackground;
    const ServiceClass second = urgent_first ? kBackground : kInteractive;
    worker.add(1, {.prompt = 300, .max_tokens = 3, .service_class = first, .shared = 290});
    ASSERT_TRUE(worker.step());
    worker.add(2, {.prompt = 300, .max_tokens = 3, .service_class = second, .shared = 290});
    ASSERT_TRUE(worker.step());
    EXPECT_EQ(worker.scheduler.reuse().waits_begun(), urgent_first ? 1u : 0u);
    EXPECT_EQ(worker.scheduler.running(), urgent_first ? 1u : 2u);
    worker.run_to_end();
  }
}

TEST(SchedulerReuse, WhenTheSourceIsCancelledTheOthersGoOnWithWhatItHad) {
  FakeWorker worker(cached_streams());
  add_forks(worker, 1, 4);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 1u);
  worker.cancel(1);
  worker.run_to_end();
  EXPECT_EQ(worker.model.prompt_rows(), 90u + 3 * 10) << "the 32 that it had computed were not lost";
  for (std::uint64_t id = 2; id <= 4; ++id) EXPECT_EQ(worker.reason(id), FinishReason::length);
}

TEST(SchedulerReuse, WhenTheSourceFailsTheOthersGoOnWithoutWhatItHad) {
  FakeWorker worker(cached_streams());
  add_forks(worker, 1, 4);
  ASSERT_TRUE(worker.step());
  ASSERT_TRUE(worker.step(DecodeStatus::failed));
  EXPECT_EQ(worker.reason(1), FinishReason::error);
  EXPECT_TRUE(worker.scheduler.reuse().cache_stats().entries == 0) << "what is in that slot is unknown";
  worker.run_to_end();
  EXPECT_EQ(worker.model.prompt_rows(), 32u + 90 + 3 * 10);
}

TEST(SchedulerReuse, AnAbortedStepChangesNothingForThoseWhoWait) {
  FakeWorker worker(cached_streams());
  add_forks(worker, 1, 3);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(worker.step(i % 2 == 0 ? DecodeStatus::aborted : DecodeStatus::ok));
  worker.run_to_end();
  EXPECT_EQ(worker.model.prompt_rows(), 90u + 3 * 10);
}

TEST(SchedulerReuse, WhoLeavesWhileItWaitsForAPrefixIsForgotten) {
  FakeWorker worker(cached_streams());
  add_forks(worker, 1, 2);
  worker.add(3, {.prompt = 100, .max_tokens = 3, .timeout_ms = 20, .shared = 90});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.waiting(), 2u);
  worker.cancel(2);
  worker.run_to_end();
  EXPECT_EQ(worker.reason(3), FinishReason::deadline);
  EXPECT_EQ(worker.reason(1), FinishReason::length);
  EXPECT_TRUE(worker.scheduler.idle());
}

TEST(SchedulerReuse, ACacheThatIsTooSmallKeepsNoRequestWaitingForLong) {
  FakeWorker worker(cached_streams(6, 200));  // less than 100 tokens take
  add_forks(worker, 1, 4);
  worker.run_to_end();
  const PrefixCache::Stats stats = worker.scheduler.reuse().cache_stats();
  EXPECT_GT(stats.refused, 0u);
  EXPECT_EQ(stats.entries, 0u);
  EXPECT_EQ(worker.scheduler.reuse().waits_begun(), 3u);
  const std::uint64_t saves = worker.model.saves();
  add_forks(worker, 5, 8);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 4u) << "it is known by now that nothing would come of it";
  worker.run_to_end();
  EXPECT_EQ(worker.scheduler.reuse().waits_begun(), 3u);
  EXPECT_EQ(worker.model.saves(), saves);
}

TEST(SchedulerReuse, ACacheForOneOfTwoFamiliesServesBothInTurn) {
  FakeWorker worker(cached_streams(3, 600));
  for (std::uint64_t id = 1; id <= 12; ++id) {
    worker.add(id, {.prompt = 100, .max_tokens = 6, .shared = 90, .family = id % 2});
  }
  worker.run_to_end();
  EXPECT_GT(worker.scheduler.reuse().cache_stats().evictions, 0u);
  for (std::uint64_t id = 1; id <= 12; ++id) EXPECT_EQ(worker.reason(id), FinishReason::length);
}

TEST(SchedulerReuse, WhenTheModelCannotCopyNoRequestWaitsForIt) {
  FakeWorker worker(cached_streams());
  worker.model.saves_to_fail = 1;
  add_forks(worker, 1, 3);
  worker.run_to_end();
  EXPECT_EQ(worker.model.saves_to_fail, 0);
  for (std::uint64_t id = 1; id <= 3; ++id) EXPECT_EQ(worker.reason(id), FinishReason::length);
}

TEST(SchedulerReuse, TenantsShareNothing) {
  FakeWorker worker(cached_streams());
  worker.add(1, {.prompt = 100, .tenant = 1, .shared = 100});
  worker.add(2, {.prompt = 100, .tenant = 2, .shared = 100});
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 2u) << "it cannot tell that another request asks the same";
  worker.run_to_end();
  worker.add(3, {.prompt = 100, .tenant = 3, .shared = 100});
  worker.run_to_end();
  EXPECT_EQ(worker.cached(2) + worker.cached(3), 0);
  EXPECT_EQ(worker.model.prompt_rows(), 300u);
}

TEST(SchedulerReuse, TenantsShareWhenToldTo) {
  SchedulerConfig config = cached_streams();
  config.reuse.shared_by_tenants = true;
  FakeWorker worker(config);
  worker.add(1, {.prompt = 100, .tenant = 1, .shared = 100});
  worker.add(2, {.prompt = 100, .tenant = 2, .shared = 100});
  worker.run_to_end();
  EXPECT_EQ(worker.cached(1) + worker.cached(2), 99);
  EXPECT_EQ(worker.model.prompt_rows(), 101u);
}

TEST(SchedulerReuse, ARequestThatDoesNotUseTheCacheNeitherTakesNorGives) {
  FakeWorker worker(cached_streams());
  const FakeWorker::Ask without{.prompt = 100, .shared = 100, .use_cache = false};
  const FakeWorker::Ask with{.prompt = 100, .shared = 100};
  worker.add(1, without);
  ASSERT_TRUE(worker.step());
  worker.add(2, with);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 2u) << "who does not give is not waited for";
  worker.cancel(2);
  worker.run_until_finished(1);
  worker.add(3, with);
  worker.run_to_end();
  EXPECT_LE(worker.cached(3), 64) << "nothing of the first one";
  worker.add(4, without);
  worker.run_to_end();
  EXPECT_EQ(worker.cached(4), 0);
  EXPECT_EQ(worker.model.prompt_rows(4), 100);
}

TEST(SchedulerReuse, WithoutACacheNothingIsCopiedAndNoRequestWaits) {
  FakeWorker worker(streams(6, 32, 400));
  add_forks(worker, 1, 4);
  ASSERT_TRUE(worker.step());
  EXPECT_EQ(worker.scheduler.running(), 4u);
  worker.run_to_end();
  EXPECT_EQ(worker.model.saves() + worker.model.restores(), 0u);
  EXPECT_EQ(worker.model.prompt_rows(), 400u);
  EXPECT_EQ(worker.scheduler.reuse().waits_begun(), 0u);
}

TEST(SchedulerReuse, APrefixThatComesBackMoreSlowlyThanItIsComputedIsComputed) {
  FakeWorker worker(cached_streams());
  worker.restore_cost = seconds(10);
  std::uint64_t id = 0;
  const auto ask = [&] {
    ++id;
    add_forks(worker, id, id);
    worker.run_to_end();
  };
  ask();
  ask();
  EXPECT_GE(worker.cached(id), 90) << "who has not tried it does not know";
  for (int i = 0; i < 100 && worker.cached(id) > 0; ++i) ask();
  EXPECT_EQ(worker.cached(id), 0);
  worker.restore_cost = Duration::zero();
  for (int i = 0; i < 100 && worker.cached(id) == 0; ++i) ask();
  EXPECT_GE(worker.cached(id), 90) << "what was slow for a while is tried again";
}

}  // namespace
}  // namespace chasqui
