// Which rows are in a step: how long chunks may be while streams wait, and who is left out of a full decode step.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "sched/fake_worker.h"

namespace chasqui {
namespace {

using Parts = FakeWorker::Parts;
constexpr ServiceClass kInteractive = ServiceClass::interactive;
constexpr ServiceClass kStandard = ServiceClass::standard;
constexpr ServiceClass kBackground = ServiceClass::background;

TEST(SchedulerRows, AStreamGetsItsTokensInTimeWhileALongPromptIsRead) {
  for (const ServiceClass service_class : {kInteractive, kStandard, kBackground}) {
    FakeWorker worker(streams(2, 512, 3000));
    worker.row_cost = milliseconds(1);
    worker.add(1, {.prompt = 64, .max_tokens = 200, .service_class = service_class});
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(worker.step());
    worker.add(2, {.prompt = 2500, .max_tokens = 1, .service_class = service_class});
    TokenCount longest = 0;
    while (!worker.finished(2)) {
      ASSERT_TRUE(worker.step());
      if (!worker.decoded()) longest = std::max(longest, worker.parts.front().second);
    }
    const SchedulerTargets targets;
    const Duration target = targets.of[static_cast<std::size_t>(service_class)].next_token;
    EXPECT_LE(worker.of(1).gap_max, target * 9 / 8) << name(service_class);
    EXPECT_GE(worker.of(1).gap_max, std::min(target, targets.prefill_step) / 2) << "and the time is used";
    EXPECT_LE(longest, targets.prefill_step / milliseconds(1) * 9 / 8) << "whoever comes during it waits for its end";
    worker.run_to_end();
  }
}

TEST(SchedulerRows, WithNobodyDecodingAChunkEndsInTimeForWhoeverComes) {
  FakeWorker worker(streams(2, 2048, 3000));
  worker.add(1, {.prompt = 64, .max_tokens = 1});
  worker.run_to_end();
  worker.add(2, {.prompt = 2500, .max_tokens = 1});
  ASSERT_TRUE(worker.step());
  EXPECT_LE(worker.result.compute, SchedulerTargets().prefill_step * 9 / 8);
  EXPECT_GE(worker.result.compute, SchedulerTargets().prefill_step / 2);
}

TEST(SchedulerRows, EachDecodeStepIsFollowedByAFewRowsEvenIfThereIsNoTime) {
  SchedulerConfig config = streams(2, 512, 1000);
  for (ClassTarget& target : config.targets.of) target.next_token = Duration::zero();
  FakeWorker worker(config);
  worker.row_cost = milliseconds(50);
  worker.decode_row_cost = milliseconds(1);
  worker.add(1, {.prompt = 16, .max_tokens = -1});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker.step());
  worker.add(2, {.prompt = 800, .max_tokens = 1});
  bool decoded_before = true;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(worker.step());
    EXPECT_NE(worker.decoded(), decoded_before);
    EXPECT_TRUE(worker.decoded() || worker.parts == (Parts{{2, 4}}));
    decoded_before = worker.decoded();
  }
}

// Under load the short ones pass, of its own class and of a more urgent one.
TEST(SchedulerRows, TheOldestPromptHasATurnTwiceASecondAndNoMore) {
  for (const ServiceClass passing : {kStandard, kInteractive}) {
    FakeWorker worker(streams(2, 64, 3000));
    worker.row_cost = milliseconds(4);
    worker.add(1, {.prompt = 2500, .max_tokens = 1});
    ASSERT_TRUE(worker.step());
    const Duration longest_step = 64 * worker.row_cost;
    TimePoint last = worker.clock.now();
    int turns = 0, passed = 0;
    for (std::uint64_t id = 2; turns < 8;) {
      if (worker.scheduler.waiting() == 0) worker.add(id++, {.prompt = 50, .max_tokens = 1, .service_class = passing});
      const TimePoint planned = worker.clock.now();
      ASSERT_TRUE(worker.step());
      ASSERT_LE(planned - last, milliseconds(500) + longest_step) << name(passing);
      if (!worker.has_part(1)) {
        ++passed;
        continue;
      }
      EXPECT_GE(planned - last, milliseconds(500)) << name(passing);
      last = worker.clock.now();
      ++turns;
    }
    EXPECT_GE(passed, 2 * turns);
  }
}

TEST(SchedulerRows, ALateInteractiveStreamGoesBeforeAPromptOfALesserClass) {
  for (const bool late : {false, true}) {
    for (const ServiceClass prompt : {kInteractive, kStandard}) {
      FakeWorker worker(streams(2));
      worker.add(1, {.max_tokens = 50, .service_class = kInteractive});
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker.step());
      ASSERT_TRUE(worker.decoded());
      worker.add(2, {.prompt = 20, .service_class = prompt});
      worker.clock.advance(late ? milliseconds(150) : milliseconds(50));
      ASSERT_TRUE(worker.step());
      EXPECT_EQ(worker.decoded(), late && prompt == kStandard) << late << ' ' << name(prompt);
      worker.run_to_end();
    }
  }
}

// 30 ms a row: with three rows a decode step takes 90 of the 100 ms that interactive streams are promised.
TEST(SchedulerRows, BackgroundStreamsAreLeftOutWhereInteractiveOnesWouldBeLateButNotForEver) {
  FakeWorker worker(streams(6, 64, 1000));
  worker.row_cost = microseconds(100);
  worker.decode_row_cost = milliseconds(30);
  for (std::uint64_t id = 1; id <= 3; ++id) worker.add(id, {.max_tokens = 300, .service_class = kBackground});
  for (std::uint64_t id = 4; id <= 6; ++id) worker.add(id, {.max_tokens = 200, .service_class = kInteractive});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(worker.step());
  int interactive_only = 0, with_background = 0;
  while (!worker.finished(6)) {
    ASSERT_TRUE(worker.step());
    ASSERT_TRUE(worker.has_part(4) && worker.has_part(5) && worker.has_part(6)) << "the most urgent are in each step";
    (worker.parts.size() == 3 ? interactive_only : with_background) += 1;
  }
  EXPECT_GT(interactive_only, 5 * with_background);
  for (const std::uint64_t id : {1, 2, 3}) {
    EXPECT_GT(worker.of(id).tokens, 10);
    EXPECT_LE(worker.of(id).gap_max, milliseconds(1000 + 400)) << "its own target, and a step or two";
  }
  worker.run_to_end();
}

TEST(SchedulerRows, ThoseWhoDoNotAllFitTakeTurns) {
  FakeWorker worker(streams(6, 64, 1000));
  worker.row_cost = microseconds(100);
  worker.decode_row_cost = milliseconds(22);  // four rows fit into 100 ms
  for (std::uint64_t id = 1; id <= 4; ++id) worker.add(id, {.max_tokens = -1, .service_class = kBackground});
  worker.add(5, {.max_tokens = 200, .service_class = kInteractive});
  worker.add(6, {.max_tokens = 200, .service_class = kInteractive});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(worker.step());
  std::map<std::uint64_t, int> rows;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(worker.step());
    for (const auto& part : worker.parts) rows[part.first] += part.second;
  }
  for (const std::uint64_t id : {1, 2, 3, 4}) EXPECT_NEAR(rows[id], 50, 5) << id;
}

TEST(SchedulerRows, ALateStandardStreamDoesNotWaitBehindABackgroundOneThatIsNotLate) {
  FakeWorker worker(streams(6, 64, 1000));
  worker.row_cost = microseconds(100);
  worker.decode_row_cost = milliseconds(30);
  worker.add(1, {.max_tokens = 200, .service_class = kBackground});
  worker.add(2, {.max_tokens = 200, .service_class = kStandard});
  for (std::uint64_t id = 3; id <= 5; ++id) worker.add(id, {.max_tokens = 200, .service_class = kInteractive});
  worker.run_until_finished(5);
  EXPECT_LE(worker.of(2).gap_max, milliseconds(150 + 2 * 150));
  EXPECT_LE(worker.of(1).gap_max, milliseconds(1000 + 2 * 150));
  worker.run_to_end();
}

// The turns are those of decode steps: chunks of a prompt between them take nobody's away.
TEST(SchedulerRows, ThoseWhoDoNotAllFitTakeTurnsWhileAPromptIsReadToo) {
  FakeWorker worker(streams(7, 64, 3000));
  worker.row_cost = milliseconds(5);
  worker.decode_row_cost = milliseconds(22);  // four rows fit into 100 ms
  for (std::uint64_t id = 1; id <= 4; ++id) worker.add(id, {.max_tokens = -1, .service_class = kBackground});
  worker.add(5, {.max_tokens = 400, .service_class = kInteractive});
  worker.add(6, {.max_tokens = 400, .service_class = kInteractive});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(worker.step());
  worker.add(7, {.prompt = 2800, .max_tokens = 1});
  std::map<std::uint64_t, int> rows;
  int steps = 0, chunks = 0;
  while (!worker.finished(7)) {
    ASSERT_TRUE(worker.step());
    (worker.decoded() ? steps : chunks) += 1;
    for (const auto& part : worker.parts) rows[part.first] += part.second;
  }
  ASSERT_GT(steps, 20);
  ASSERT_GT(chunks, 20);
  for (const std::uint64_t id : {1, 2, 3, 4}) {
    EXPECT_NEAR(rows[id], steps / 2, steps / 8) << id;
    EXPECT_LE(worker.of(id).gap_max, milliseconds(800)) << "each is in every second decode step: twice 330 ms";
  }
  worker.run_to_end();
}

// Standard streams that are always late, more of them than a step takes in, beside a background one that is not.
TEST(SchedulerRows, ManyLateStreamsTakeTurnsWhoeverElseIsThere) {
  SchedulerConfig config = streams(9, 64, 1000);
  config.targets.of[1].next_token = Duration::zero();
  FakeWorker worker(config);
  worker.row_cost = microseconds(100);
  worker.decode_row_cost = milliseconds(35);
  worker.add(1, {.max_tokens = -1, .service_class = kBackground});
  ASSERT_TRUE(worker.step());
  for (std::uint64_t id = 2; id <= 6; ++id) worker.add(id, {.max_tokens = -1, .service_class = kStandard});
  for (std::uint64_t id = 7; id <= 9; ++id) worker.add(id, {.max_tokens = 100, .service_class = kInteractive});
  worker.run_until_finished(9);
  for (std::uint64_t id = 2; id <= 6; ++id) EXPECT_LE(worker.of(id).gap_max, 3 * 9 * milliseconds(35)) << id;
  EXPECT_LE(worker.of(1).gap_max, milliseconds(1000) + 3 * 7 * milliseconds(35));
  worker.run_to_end();
}

TEST(SchedulerRows, MoreLesserStreamsThanRowsTakeTurnsToo) {
  FakeWorker worker(streams(4, 2));
  worker.row_cost = microseconds(100);
  worker.add(1, {.prompt = 1, .max_tokens = 60, .service_class = kInteractive});
  for (std::uint64_t id = 2; id <= 4; ++id)
    worker.add(id, {.prompt = 1, .max_tokens = -1, .service_class = kBackground});
  worker.run_until_finished(1);
  for (const std::uint64_t id : {2, 3, 4}) EXPECT_GE(worker.of(id).tokens, 15) << id;
  worker.run_to_end();
}

TEST(SchedulerRows, MoreStreamsThanRowsTakeTurns) {
  FakeWorker worker(streams(4, 2));
  worker.row_cost = microseconds(100);
  worker.add(1, {.prompt = 1, .max_tokens = 60});
  worker.add(2, {.prompt = 1, .max_tokens = 60});
  worker.add(3, {.prompt = 1, .max_tokens = 60});
  worker.add(4, {.prompt = 1, .max_tokens = 60, .service_class = kBackground});
  worker.run_until_finished(1);
  EXPECT_GE(worker.of(2).tokens, 55);
  EXPECT_GE(worker.of(3).tokens, 55) << "the one in the middle too";
  worker.run_to_end();
}

}  // namespace
}  // namespace chasqui
