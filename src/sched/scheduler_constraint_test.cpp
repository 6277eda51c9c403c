// What grammars take for a token is a part of the step that streams wait for: beside them, prompts get so much less
// time.
#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

// The longest wait for a token, of streams with grammars while a long prompt is read.
Duration longest_gap(bool told, Duration cost) {
  SchedulerConfig config = dense_streams(5, 512, 4000);
  for (ClassTarget& target : config.targets.of) target.next_token = milliseconds(100);
  FakeWorker worker(config);
  worker.step_cost = milliseconds(3);
  worker.row_cost = microseconds(100);
  worker.constraint_cost = cost;
  worker.constraints_are_told = told;
  for (std::uint64_t id = 1; id <= 4; ++id) worker.add(id, {.prompt = 12, .max_tokens = 120, .constrained = true});
  for (int i = 0; i < 20; ++i) worker.step();
  for (auto& [id, outcome] : worker.outcomes) outcome.gap_max = {};
  worker.add(5, {.prompt = 3000, .max_tokens = 1});
  while (worker.step()) {
  }
  EXPECT_EQ(worker.outcomes.at(RequestId{5}).finished, 1);
  Duration longest{};
  for (std::uint64_t id = 1; id <= 4; ++id) longest = std::max(longest, worker.outcomes.at(RequestId{id}).gap_max);
  return longest;
}

TEST(SchedulerConstraint, StreamsKeepToTheirTargetBesideAPrompt) {
  EXPECT_GT(longest_gap(false, milliseconds(12)), milliseconds(120)) << "what is not known is not planned for";
  EXPECT_LE(longest_gap(true, milliseconds(12)), milliseconds(105));
  EXPECT_LE(longest_gap(true, Duration::zero()), milliseconds(105));
}

// A token whose mask takes long is put off: its stream sits out steps, and the others go on.
TEST(SchedulerConstraint, ATokenThatWaitsHoldsUpNoOther) {
  for (const bool dense : {false, true}) {
    FakeWorker worker(dense ? dense_streams(4, 64, 200) : streams(4, 64, 200));
    worker.add(1, {.prompt = 9, .max_tokens = 40});
    worker.add(2, {.prompt = 1, .max_tokens = 10, .script = {.waits = 3}, .constrained = true});
    worker.add(3, {.prompt = 30, .max_tokens = 10, .script = {.end_after = 7, .waits = 1}, .tell_progress = true});
    int steps = 0;
    for (; !worker.finished(1); ++steps) ASSERT_TRUE(worker.step());
    EXPECT_LE(steps, 48) << "a step for each token, and for the prompts";
    worker.run_to_end();
    EXPECT_EQ(worker.of(2).tokens, 10);
    EXPECT_EQ(worker.of(2).last.usage.steps, 40) << "each token in the fourth step";
    EXPECT_EQ(worker.of(3).tokens, 7);
    EXPECT_EQ(worker.model.waits(), 3u * 10 + 7);
  }
}

// A row that is computed again alone is not bit by bit the one that was computed at the end of its chunk.
TEST(SchedulerConstraint, ADeterministicChunkIsComputedAgainAsItWas) {
  for (const bool deterministic : {false, true}) {
    FakeWorker worker(streams());
    worker.add(1, {.prompt = 9, .max_tokens = 3, .script = {.waits = 2}, .deterministic = deterministic});
    worker.run_to_end();
    EXPECT_EQ(worker.of(1).tokens, 3);
    EXPECT_EQ(worker.model.prompt_rows(), deterministic ? 3u * 9 : 9u + 2) << "read once, and again for each wait";
  }
}

// … also alone, and where it is cancelled or fails meanwhile.
TEST(SchedulerConstraint, ARequestMayEndWhileItsTokenWaits) {
  FakeWorker worker(streams());
  worker.add(1, {.prompt = 5, .max_tokens = 4, .script = {.waits = 2}});
  worker.run_to_end();
  EXPECT_EQ(worker.reason(1), FinishReason::length);
  worker.add(2, {.prompt = 5, .max_tokens = 4, .script = {.waits = 50}});
  worker.add(3, {.prompt = 5, .max_tokens = 4, .script = {.waits = 50}});
  for (int i = 0; i < 20; ++i) worker.step();
  worker.cancel(2);
  EXPECT_EQ(worker.reason(2), FinishReason::cancelled);
  worker.step(DecodeStatus::aborted);
  worker.step();
  worker.step(DecodeStatus::failed);
  EXPECT_EQ(worker.reason(3), FinishReason::error);
  EXPECT_EQ(worker.of(3).tokens, 0);
}

TEST(SchedulerConstraint, IsForgottenWhenItTakesLittle) {
  StepTime times;
  EXPECT_EQ(times.constraint(), Duration::zero());
  times.constrained(2, milliseconds(80));
  EXPECT_EQ(times.constraint(), milliseconds(20)) << "half of what a token took";
  times.constrained(0, {});
  for (int i = 0; i < 60; ++i) times.constrained(4, microseconds(40));
  EXPECT_LT(times.constraint(), microseconds(50));
}

}  // namespace
}  // namespace chasqui
