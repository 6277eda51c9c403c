// What grammars force: that it changes no answer, that its rows are computed together where that is faster, and that no
// stream waits for it.
#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

// A long answer to each of them, and how many steps it took.
struct Forced {
  explicit Forced(const SchedulerConfig& config, int requests = 1, bool forces = true, Duration row = microseconds(100))
      : worker(config) {
    worker.step_cost = milliseconds(10);
    worker.row_cost = row;
    for (int id = 1; id <= requests; ++id) {
      worker.add(static_cast<std::uint64_t>(id), {.prompt = 12, .max_tokens = 200, .script = {.forces = forces}});
    }
    const TimePoint begin = worker.clock.now();
    while (worker.step()) {
      ++steps;
      for (const auto& [request, rows] : worker.parts) widest = std::max(widest, worker.decoded() ? rows : 0);
    }
    took = worker.clock.now() - begin;
  }
  FakeWorker worker;
  int steps = 0;
  TokenCount widest = 0;
  Duration took{};
};

// FakeWorker compares each answer with what the request says when it is alone and all is sampled.
TEST(SchedulerForced, SavesStepsAndChangesNoAnswer) {
  for (const auto& config : {streams(4, 64, 1000), dense_streams(4, 64, 1000), one_pool(4, 4000)}) {
    for (const int requests : {1, 3}) {
      const Forced sampled(config, requests, false);
      const Forced forced(config, requests);
      EXPECT_LT(forced.took, sampled.took * 4 / 5);
      EXPECT_GT(forced.widest, 4);
      TokenCount told = 0;
      for (const auto& [id, outcome] : forced.worker.outcomes) {
        EXPECT_EQ(outcome.tokens, 200);
        EXPECT_EQ(outcome.last.usage.completion, 200);
        EXPECT_EQ(outcome.last.reason, FinishReason::length);
        told += outcome.last.usage.forced_tokens;
      }
      EXPECT_EQ(told, static_cast<TokenCount>(forced.worker.model.forced_tokens()));
      EXPECT_GT(told, 50);
      EXPECT_EQ(sampled.worker.model.forced_tokens(), 0u);
    }
  }
}

TEST(SchedulerForced, TakesNoLongerWhereARowCostsAsMuchAsAStep) {
  const SchedulerConfig config = dense_streams(8, 64, 1000);
  const Forced sampled(config, 8, false, milliseconds(50));
  const Forced forced(config, 8, true, milliseconds(50));
  EXPECT_LE(forced.took, sampled.took * 101 / 100);
}

// A sequence gets a row in every decode step, so it is never later than if all had been sampled.
TEST(SchedulerForced, IsNeverLaterThanSampled) {
  FakeWorker worker(dense_streams(4, 64, 1000));
  worker.step_cost = milliseconds(1);
  worker.row_cost = milliseconds(40);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    worker.add(id, {.prompt = 12, .max_tokens = 100, .script = {.forces = id == 1}});
  }
  while (worker.step()) {
    if (!worker.decoded()) continue;
    const auto has_rows = [&](std::uint64_t id) {
      return std::ranges::any_of(worker.parts, [id](const auto& part) { return part.first == id; });
    };
    for (const auto& sequence : worker.scheduler.running_sequences()) {
      const bool old = sequence->decoding() && sequence->generated() > 1;
      EXPECT_TRUE(!old || has_rows(sequence->id().value));
    }
  }
  EXPECT_LE(worker.outcomes.at(RequestId{1}).last.usage.decode, worker.outcomes.at(RequestId{2}).last.usage.decode);
}

TEST(SchedulerForced, GoesOnWithDraftTokensBesideIt) {
  for (auto config : {dense_streams(4, 64, 1000), one_pool(4, 4000)}) {
    config.speculation = {.draft_tokens_max = 4, .draft_tokens_min = 3, .outputs_max = 256};
    FakeWorker worker(config);
    worker.step_cost = milliseconds(10);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      worker.add(id, {.prompt = 12, .max_tokens = 200, .script = {.forces = id != 3, .repeats = true}});
    }
    while (worker.step()) {
    }
    EXPECT_GT(worker.model.accepted_tokens(), 50u);
    EXPECT_GT(worker.model.forced_tokens(), 20u);
  }
}

// It is computed as a prompt is, then.
TEST(SchedulerForced, SurvivesTheLossOfASlot) {
  SchedulerConfig config = one_pool(3, 90);
  FakeWorker worker(config);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    worker.add(id, {.prompt = 10, .max_tokens = 70, .script = {.forces = true}});
  }
  while (worker.step()) {
  }
  EXPECT_GT(worker.scheduler.preemptions(), 0u);
  EXPECT_GT(worker.model.forced_tokens(), 20u);
  for (const auto& [id, outcome] : worker.outcomes) EXPECT_EQ(outcome.tokens, 70);
}

}  // namespace
}  // namespace chasqui
