// Draft tokens of what sequences say next: that they change no answer, that they save steps where they are often right,
// and that they cost hardly anything where they are not.
#include <algorithm>
#include <array>
#include <utility>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

SchedulerConfig speculating(SchedulerConfig config, TokenCount draft_tokens = 4) {
  config.speculation = {.draft_tokens_max = draft_tokens, .outputs_max = 256};
  return config;
}

// A long answer to each of them, and how many steps it took after all had begun to speak.
struct Answers {
  explicit Answers(const SchedulerConfig& config, int requests = 1, bool repeats = true,
                   Duration row = microseconds(100))
      : worker(config) {
    worker.step_cost = milliseconds(10);
    worker.row_cost = row;
    for (int id = 1; id <= requests; ++id) {
      worker.add(static_cast<std::uint64_t>(id), {.prompt = 12, .max_tokens = 200, .script = {.repeats = repeats}});
    }
    const TimePoint begin = worker.clock.now();
    while (worker.step()) ++steps;
    took = worker.clock.now() - begin;
  }
  double right_share() const {
    return static_cast<double>(worker.model.accepted_tokens()) / static_cast<double>(worker.model.draft_tokens());
  }
  FakeWorker worker;
  int steps = 0;
  Duration took{};
};

// FakeWorker compares each answer with what the request says when it is alone.
TEST(SchedulerSpeculation, SavesStepsWhereAnAnswerRepeatsItself) {
  for (const auto& config : {streams(4, 64, 1000), dense_streams(4, 64, 1000), one_pool(4, 4000)}) {
    const Answers plain(config);
    const Answers drafted(speculating(config));
    EXPECT_LT(drafted.steps, plain.steps * 2 / 3);
    EXPECT_LT(drafted.took, plain.took * 3 / 4);
    EXPECT_EQ(plain.worker.model.draft_tokens(), 0u);
    const Usage usage = drafted.worker.outcomes.at(RequestId{1}).last.usage;
    EXPECT_EQ(usage.draft_tokens, static_cast<TokenCount>(drafted.worker.model.draft_tokens()));
    EXPECT_EQ(usage.accepted_tokens, static_cast<TokenCount>(drafted.worker.model.accepted_tokens()));
    const Speculation::Stats& stats = drafted.worker.scheduler.speculation().stats();
    EXPECT_EQ(stats.checked, drafted.worker.model.draft_tokens());
    EXPECT_EQ(stats.accepted, drafted.worker.model.accepted_tokens());
    EXPECT_GE(stats.accepted_at[0], stats.accepted_at[1]);
    EXPECT_GT(stats.accepted_at[1], 0u);
  }
}

TEST(SchedulerSpeculation, ManySequencesShareTheStepsThatCheck) {
  for (const auto& config : {dense_streams(8, 128, 1000), one_pool(8, 8000)}) {
    const Answers plain(config, 8);
    const Answers drafted(speculating(config), 8);
    EXPECT_LT(drafted.took, plain.took * 4 / 5);
  }
}

// Where a row costs as much as it does for the machine that is busy, waiting is what brings most tokens.
TEST(SchedulerSpeculation, ChecksNothingWhereARowCostsAsMuchAsAStep) {
  const SchedulerConfig config = dense_streams(4, 64, 1000);
  const Answers plain(config, 4, true, milliseconds(50));
  const Answers drafted(speculating(config), 4, true, milliseconds(50));
  EXPECT_LE(drafted.took, plain.took * 103 / 100) << "but for a few trials";
}

TEST(SchedulerSpeculation, ChecksNothingInTextThatDoesNotRepeatItself) {
  const SchedulerConfig config = dense_streams(4, 64, 1000);
  const Answers plain(config, 4, false);
  const Answers drafted(speculating(config), 4, false);
  EXPECT_LE(drafted.took, plain.took * 103 / 100);
}

// libllama builds a graph for each size of batch, and caches are cold: what a size took the first time says little.
TEST(SchedulerSpeculation, WhatWasSlowTheFirstTimeIsTriedAgain) {
  const auto steps_of = [](Duration new_size_cost) {
    FakeWorker worker(speculating(dense_streams(1, 64, 1000)));
    worker.step_cost = milliseconds(10);
    worker.row_cost = microseconds(100);
    worker.new_size_cost = new_size_cost;
    worker.add(1, {.prompt = 12, .max_tokens = 800, .script = {.repeats = true}});
    int steps = 0;
    while (worker.step()) ++steps;
    return steps;
  };
  EXPECT_LE(steps_of(milliseconds(20)), steps_of({}) + 20);
}

// A step is not learned from where draft tokens have just changed its size; that must not outlast the draft tokens.
TEST(SchedulerSpeculation, StepTimesAreLearnedAgainWithoutDraftTokens) {
  for (TokenCount tokens = 40; tokens < 50; ++tokens) {
    FakeWorker worker(speculating(dense_streams(2, 64, 1000)));
    worker.step_cost = milliseconds(10);
    worker.row_cost = microseconds(100);
    worker.add(1, {.prompt = 12, .max_tokens = tokens, .script = {.repeats = true}});
    worker.run_to_end();
    worker.step_cost = milliseconds(40);
    RequestDraft draft;
    draft.prompt = test_prompt(12, 2);
    draft.max_tokens = 60;
    draft.draft_tokens_max = 0;
    worker.submit(2, std::move(draft), {});
    Duration predicted{};
    while (worker.step()) predicted = worker.batch.predicted;
    EXPECT_GT(predicted, milliseconds(30)) << tokens;
  }
}

// Heads have read what the model has, and make all their draft tokens at once.
TEST(SchedulerSpeculation, HeadsAreAskedWhereAllTheirDraftTokensPay) {
  const auto took = [](std::optional<Duration> heads) {
    SchedulerConfig config = dense_streams(2, 64, 1000);
    if (heads) {
      config = speculating(config, 3);
      config.speculation.draft_model = config.speculation.heads = true;
    }
    FakeWorker worker(config);
    worker.step_cost = milliseconds(10);
    worker.row_cost = microseconds(100);
    worker.heads_cost = heads;
    const TimePoint begin = worker.clock.now();
    for (std::uint64_t id : {1, 2}) worker.add(id, 40, 900);
    while (worker.step()) EXPECT_TRUE(worker.batch.drafting.reading.empty());
    return to_seconds(worker.clock.now() - begin);
  };
  const double plain = took(std::nullopt);
  EXPECT_LT(took(milliseconds(3)), 0.5 * plain) << "four tokens in a step that takes a third longer";
  EXPECT_LT(took(milliseconds(40)), 1.1 * plain) << "four tokens in the time of five";
}

struct HeadedWorker : FakeWorker {
  explicit HeadedWorker(bool heads, bool alone = false) : FakeWorker(config_with(heads, alone)) {
    step_cost = milliseconds(10);
    row_cost = microseconds(100);
    if (heads) heads_cost = milliseconds(2);
    heads_know = 16;
    learn_cost = milliseconds(3);
  }
  static SchedulerConfig config_with(bool heads, bool alone) {
    SchedulerConfig config = dense_streams(2, 64, 1000);
    if (heads) config = speculating(config, 3);
    config.speculation.alone = alone;
    config.speculation.draft_model = config.speculation.heads = heads;
    return config;
  }
  double answer(std::uint64_t id, std::int64_t tokens) {
    const TimePoint begin = clock.now();
    add(id, 40, tokens);
    run_to_end();
    return to_seconds(clock.now() - begin);
  }
};

TEST(SchedulerSpeculation, HeadsThatAreNeverRightCostHardlyAnything) {
  HeadedWorker plain(false), headed(true);
  headed.acceptance_rate = 0;
  double without = 0, with = 0;
  for (std::uint64_t id = 1; id <= 40; ++id) {
    without += plain.answer(id, 200);
    with += headed.answer(id, 200);
  }
  EXPECT_LT(with, 1.03 * without) << "each step that they learn of takes 1.3 times as long";
}

TEST(SchedulerSpeculation, HeadsThatWereWrongForLongAreAskedAgain) {
  HeadedWorker plain(false), headed(true);
  headed.acceptance_rate = 0;
  std::uint64_t id = 1;
  for (; id <= 30; ++id) headed.answer(id, 100);
  const auto checked = headed.scheduler.speculation().stats().checked;
  EXPECT_LT(checked, 100u);
  headed.acceptance_rate = 1;
  for (; id <= 60; ++id) headed.answer(id, 100);
  EXPECT_LT(headed.answer(id, 400), 0.6 * plain.answer(id, 400));
}

// What they knew of an answer ends where they stopped to learn of it.
TEST(SchedulerSpeculation, HeadsBeginAnewWithinAnAnswer) {
  HeadedWorker plain(false), headed(true);
  headed.step_cost = Duration::zero();
  headed.row_cost = milliseconds(10);
  headed.add(1, 40, 900);
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(headed.step());
  EXPECT_FALSE(headed.batch.learn) << "no row of a draft token pays";
  headed.step_cost = milliseconds(10);
  headed.row_cost = microseconds(100);
  for (int i = 0; i < 500 && headed.step(); ++i) {
  }
  EXPECT_TRUE(headed.finished(1)) << "in fewer steps than tokens";
}

// Models whose memory is partly a state: nothing is checked in company, and afterwards heads know enough again.
TEST(SchedulerSpeculation, HeadsDraftWhereOneSequenceDecodes) {
  HeadedWorker worker(true, true);
  const auto checked = [&worker] { return worker.scheduler.speculation().stats().checked; };
  worker.add(1, 40, 900);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(worker.step());
  EXPECT_GT(checked(), 30u);
  worker.add(2, 40, 200);
  for (int i = 0; !worker.finished(2); ++i) {
    ASSERT_TRUE(worker.step());
    if (worker.batch.parts.size() < 2) continue;
    for (const BatchPart& part : worker.batch.parts) EXPECT_EQ(part.draft_tokens, 0) << i;
  }
  const auto in_company = checked();
  ASSERT_FALSE(worker.finished(1));
  worker.run_to_end();
  EXPECT_GT(checked() - in_company, 300u);
}

// libllama builds its graph anew for each step that has not as many rows as the one before.
TEST(SchedulerSpeculation, DoesNotTurnBackAndForthWhereItHardlyPays) {
  for (const int row : {2, 3, 4, 5, 6}) {
    const auto took = [row](TokenCount most, TokenCount least) {
      SchedulerConfig config = speculating(dense_streams(8, 128, 1000), most);
      config.speculation.draft_tokens_min = least;
      FakeWorker worker(config);
      worker.step_cost = milliseconds(10);
      worker.row_cost = milliseconds(row);
      worker.turn_cost = milliseconds(15);
      const auto answer = [&worker](std::uint64_t first, std::int64_t tokens) {
        const TimePoint begin = worker.clock.now();
        for (std::uint64_t id = first; id < first + 8; ++id) {
          worker.add(id, {.prompt = 12, .max_tokens = tokens, .script = {.repeats = true}});
        }
        worker.run_to_end();
        return to_seconds(worker.clock.now() - begin);
      };
      answer(1, 300);  // until it knows what pays
      return answer(11, 600);
    };
    EXPECT_LT(took(7, 0), 1.05 * std::min(took(0, 0), took(3, 3))) << row << " ms a row";
  }
}

// What a step takes by its rows: F16 weights of 24 M parameters on two cores (docs/performance.md), straight lines
// between.
Duration small_model(std::size_t rows) {
  static constexpr std::array<std::pair<double, double>, 9> kMs = {
      {{1, 1.6}, {2, 1.7}, {4, 1.9}, {8, 4.2}, {16, 8.5}, {32, 13}, {64, 20.8}, {128, 34}, {256, 58}}};
  std::size_t i = 1;
  while (i + 1 < kMs.size() && kMs[i].first < static_cast<double>(rows)) ++i;
  const auto [from, less] = kMs[i - 1];
  const auto [to, more] = kMs[i];
  const double ms = less + (more - less) * (static_cast<double>(rows) - from) / (to - from);
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
}

// The seconds that answers of 100 tokens for each of `streams` take, in the long run.
double seconds_with_chance(int streams, double chance, TokenCount most, TokenCount least) {
  SchedulerConfig config = speculating(dense_streams(streams, 256, 512), most);
  config.speculation.draft_tokens_min = least;
  config.speculation.always = true;
  FakeWorker worker(config);
  worker.acceptance_rate = chance;
  worker.decode_cost = &small_model;
  worker.row_cost = microseconds(300);
  std::uint64_t id = 0;
  const auto answers = [&] {
    const TimePoint begin = worker.clock.now();
    for (int i = 0; i < streams; ++i) worker.add(++id, 20, 100);
    worker.run_to_end();
    return to_seconds(worker.clock.now() - begin);
  };
  while (to_seconds(worker.clock.now().time_since_epoch()) < 10) answers();
  double all = 0;
  int times = 0;
  for (; all < 10; ++times) all += answers();
  return all / times;
}

// What is missing is the time of trials (1 %), and what is chosen when a few draft tokens were accepted or rejected by
// chance.
TEST(SchedulerSpeculation, BringsWhatTheBetterOfNoneAndAlwaysThreeBrings) {
  for (const int streams : {1, 4, 16}) {
    const double none = seconds_with_chance(streams, 0, 0, 0);
    for (const double chance : {0.0, 0.3, 0.6, 0.8, 0.95}) {
      const double best = std::min(none, seconds_with_chance(streams, chance, 3, 3));
      EXPECT_LT(0.96 * seconds_with_chance(streams, chance, 7, 0), best) << streams << " streams, chance " << chance;
    }
  }
}

TEST(SchedulerSpeculation, ARequestMayHaveNone) {
  SchedulerConfig config = speculating(streams(4, 64, 1000));
  FakeWorker worker(config);
  worker.step_cost = milliseconds(10);
  RequestDraft draft;
  draft.prompt = test_prompt(12, 1);
  draft.max_tokens = 200;
  draft.draft_tokens_max = 0;
  worker.submit(1, std::move(draft), {.repeats = true});
  worker.run_to_end();
  EXPECT_EQ(worker.model.draft_tokens(), 0u);
  EXPECT_EQ(worker.of(1).tokens, 200);
}

// One more than the answer may have would be a row for nothing, and a cell that may not be there.
TEST(SchedulerSpeculation, NeverDraftsBeyondTheEndOfTheAnswerOrOfTheSlot) {
  for (TokenCount tokens = 1; tokens < 40; ++tokens) {
    FakeWorker worker(speculating(dense_streams(2, 64, 52), 8));
    worker.step_cost = milliseconds(10);
    worker.row_cost = microseconds(100);
    worker.add(1, {.prompt = 12, .max_tokens = tokens, .script = {.repeats = true}});
    worker.add(2, {.prompt = 12, .max_tokens = -1, .script = {.end_after = tokens, .repeats = true}});
    worker.run_to_end();
    EXPECT_EQ(worker.of(1).tokens, tokens);
    EXPECT_EQ(worker.of(2).tokens, tokens);
  }
}

TEST(SchedulerSpeculation, InOnePoolItTakesNoCellsThatOthersNeed) {
  FakeWorker worker(speculating(one_pool(4, 120)));
  worker.step_cost = milliseconds(10);
  worker.row_cost = microseconds(100);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    worker.add(id, {.prompt = 10, .max_tokens = 60, .script = {.repeats = true}});
  }
  worker.run_to_end();
  for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_EQ(worker.of(id).tokens, 60);
  EXPECT_GT(worker.model.accepted_tokens(), 0u);
}

}  // namespace
}  // namespace chasqui
