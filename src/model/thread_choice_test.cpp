#include "model/thread_choice.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

using Cost = std::function<Duration(std::int32_t threads, int step)>;

struct Outcome {
  int right = 0;  // steps that were computed with the expected number of threads, uncut
  int last_wrong = -1;
  int cuts = 0;
  Duration spent{};
  Duration longest{};  // step, with what was cut of it
};

class World {
 public:
  explicit World(std::int32_t most) : choice_(most, most) {}
  World(std::int32_t one_row, std::int32_t more_rows) : choice_(one_row, more_rows) {}

  Outcome run(int steps, std::int32_t expected, const Cost& cost, std::size_t rows = 4, TokenCount position = 0,
              Batch::Kind kind = Batch::Kind::decode) {
    Batch batch;
    batch.kind = kind;
    batch.rows.assign(rows, Row{0, position, SlotId{0}, false});
    Outcome outcome;
    for (int step = 0; step < steps; ++step) {
      const TimePoint start = clock_.now();
      const int cuts = outcome.cuts;
      const std::int32_t threads = compute(batch, cost, step, outcome.cuts);
      outcome.spent += clock_.now() - start;
      outcome.longest = std::max(outcome.longest, clock_.now() - start);
      if (threads == expected && cuts == outcome.cuts) {
        ++outcome.right;
      } else {
        outcome.last_wrong = step;
      }
    }
    return outcome;
  }

  void allow(std::int32_t threads) { allowed_ = threads; }
  void rest(Duration d) { clock_.advance(d); }
  std::int32_t ceiling() const { return choice_.limit(); }

 private:
  // As LlamaModel does it. The number of threads that finished the step.
  std::int32_t compute(const Batch& batch, const Cost& cost, int step, int& cuts) {
    ThreadPlan plan = choice_.choose(batch, clock_.now(), allowed_);
    Duration took = cost(plan.threads, step);
    while (took > plan.patience) {
      ++cuts;
      clock_.advance(plan.patience);
      plan = choice_.cut(plan.patience, clock_.now());
      took = cost(plan.threads, step);
    }
    clock_.advance(took);
    choice_.observe(took, clock_.now());
    return plan.threads;
  }

  ManualClock clock_;
  ThreadChoice choice_;
  std::int32_t allowed_ = ThreadChoice::kAnyNumber;
};

Duration quiet(std::int32_t threads, int) { return microseconds(8000 / threads); }
// Another process on one of two cores: two threads wait for each other.
Duration shared(std::int32_t threads, int) { return threads == 1 ? milliseconds(10) : milliseconds(400); }

TEST(ThreadChoice, OneIsOne) {
  World world(1);
  EXPECT_EQ(world.run(100, 1, quiet).right, 100);
}

TEST(ThreadChoice, AllWhereTheyAreFaster) {
  World world(2);
  const Outcome outcome = world.run(1000, 2, quiet);
  EXPECT_GE(outcome.right, 975);
  EXPECT_LT(outcome.spent, 1000 * milliseconds(4) * 1.03);
}

TEST(ThreadChoice, FewerWhereTheyWaitForEachOther) {
  World world(2);
  const Outcome outcome = world.run(1000, 1, shared);
  EXPECT_GE(outcome.right, 997);
  EXPECT_LT(outcome.spent, 1000 * milliseconds(10) * 1.15);
}

// 100 ms a step: half as many threads would take 100 ms more.
TEST(ThreadChoice, ALongStepIsTriedWithFewerOnlyUntilOneLoadKnowsBetter) {
  const auto slow = [](std::int32_t threads, int) { return milliseconds(200) / threads; };
  World knowing(2);
  knowing.run(20, 2, quiet, 4);
  EXPECT_EQ(knowing.run(5000, 2, slow, 64).right, 5000);
  World ignorant(2);
  const Outcome first = ignorant.run(5000, 2, slow, 64);
  EXPECT_EQ(first.right, 4999) << "what it has seen may come from threads that wait for each other";
  EXPECT_EQ(first.last_wrong, 1);
}

TEST(ThreadChoice, FollowsWhatChanges) {
  World world(2);
  world.run(500, 2, quiet);
  const Outcome busy = world.run(500, 1, shared);
  EXPECT_GE(busy.right, 485);
  EXPECT_LT(busy.spent, 500 * milliseconds(10) * 1.06);
  // Back after at most the pause that the last trial earned, and then for good.
  const Outcome again = world.run(8000, 2, quiet);
  EXPECT_GE(again.right, 4500);
}

TEST(ThreadChoice, OneHiccupIsForgivenSoon) {
  World world(2);
  world.run(200, 2, quiet);
  const auto hiccup = [](std::int32_t threads, int step) { return step == 0 ? milliseconds(500) : quiet(threads, 0); };
  EXPECT_GE(world.run(200, 2, hiccup).right, 150);
}

// A core that others need for a few steps now and then, as when a burst of requests arrives.
TEST(ThreadChoice, StepsThatAreSlowForOnceDoNotMakeFewerThreadsLookBetter) {
  World world(2);
  const auto bursts = [](std::int32_t threads, int step) {
    if (threads == 1) return microseconds(6500);
    return microseconds(step % 12 < 3 ? 9900 : 4000);
  };
  EXPECT_GE(world.run(1000, 2, bursts).right, 950);
}

TEST(ThreadChoice, FindsTheBestOfMany) {
  World world(16);
  const auto best_with_four = [](std::int32_t threads, int) {
    return microseconds(threads <= 4 ? 8000 / threads : 2000 + 300 * threads);
  };
  EXPECT_GE(world.run(2000, 4, best_with_four).right, 1800);
}

TEST(ThreadChoice, BatchesOfOtherSizesAreAnotherMatter) {
  World world(2);
  world.run(200, 1, shared, 1);
  // The first estimate is what was right before, and a trial waits until the last one, which took long, is paid for.
  EXPECT_GE(world.run(40000, 2, quiet, 64).right, 15000);
  EXPECT_GE(world.run(200, 1, shared, 1).right, 195);
  EXPECT_GE(world.run(200, 1, shared, 512).right, 195);
}

TEST(ThreadChoice, CutsAStepThatIsStrangled) {
  World world(2);
  world.run(200, 2, quiet);
  const auto strangled = [](std::int32_t threads, int) { return threads == 1 ? milliseconds(10) : seconds(5); };
  const Outcome outcome = world.run(100, 1, strangled);
  EXPECT_GE(outcome.cuts, 1);
  EXPECT_LT(outcome.longest, milliseconds(50));
  EXPECT_LT(outcome.spent, 100 * milliseconds(10) * 1.1);
}

TEST(ThreadChoice, ContentionOnOneLoadLowersAll) {
  World world(2);
  world.run(200, 2, quiet, 1);
  world.run(200, 2, quiet, 32);
  const Outcome first = world.run(2, 1, shared, 1);  // one of them may be the trial of one thread
  EXPECT_EQ(first.cuts, 1);
  EXPECT_EQ(world.ceiling(), 1);
  // Loads that were fast with two threads, and loads that were never seen.
  EXPECT_EQ(world.run(2, 1, shared, 32).right, 2);
  EXPECT_EQ(world.run(2, 1, shared, 512, 0, Batch::Kind::prefill).right, 2);
}

TEST(ThreadChoice, ASlowStepIsAWarningToo) {
  World world(2);
  world.run(200, 2, quiet);
  // Not slow enough to be cut, which takes three times and 20 ms.
  world.run(1, 2, [](std::int32_t, int) { return milliseconds(15); });
  EXPECT_EQ(world.ceiling(), 1);
}

// When trials of the ceiling happened while nothing got better, by what they cost.
TEST(ThreadChoice, PausesDoubleWhileTrialsFail) {
  World world(2);
  world.run(200, 2, quiet);
  const Outcome busy = world.run(6000, 1, shared);  // a minute
  // The first, and then after 0.05 s, 0.1, 0.2 … and every 4 s.
  EXPECT_GE(busy.cuts, 18);
  EXPECT_LE(busy.cuts, 23);
  EXPECT_LT(busy.longest, milliseconds(40));
}

TEST(ThreadChoice, SuccessEndsContentionAndResetsThePause) {
  World world(2);
  world.run(200, 2, quiet);
  world.run(3000, 1, shared);
  const Outcome free = world.run(5000, 2, quiet);
  EXPECT_EQ(world.ceiling(), 2);
  EXPECT_LE(free.last_wrong, 5000);
  EXPECT_GE(free.right, 3500);
  // The calm was longer than the pause before it, so the next contention begins with the shortest one again.
  EXPECT_EQ(world.run(1, 1, shared).cuts, 1);
  EXPECT_EQ(world.run(3, 1, shared).cuts, 0);
  world.rest(milliseconds(100));
  EXPECT_EQ(world.run(1, 2, quiet).right, 1);
  EXPECT_EQ(world.ceiling(), 2);
}

TEST(ThreadChoice, CalmsThatDoNotLastAreNone) {
  World world(2);
  world.run(200, 2, quiet);
  // Something that runs every now and then: each time that all seems well, it is not.
  int busy_steps = 0;
  const auto flaps = [&](std::int32_t threads, int) {
    if (threads == 1) return milliseconds(10);
    return ++busy_steps % 3 == 0 ? milliseconds(400) : milliseconds(5);
  };
  const Outcome outcome = world.run(6000, 1, flaps);
  EXPECT_LT(outcome.cuts, 25);
}

TEST(ThreadChoice, PromptsWaitForDecodesWithTheirTrials) {
  World world(2);
  const auto prefill = [](Cost cost) {
    return [cost](std::int32_t threads, int step) { return 50 * cost(threads, step); };
  };
  world.run(100, 2, quiet);
  world.run(20, 2, prefill(quiet), 512, 0, Batch::Kind::prefill);
  EXPECT_EQ(world.run(2, 1, shared).cuts, 1);
  world.rest(milliseconds(300));
  // 0.5 s a step: due, but not for this one. Without any decode, later all the same.
  EXPECT_EQ(world.run(1, 1, prefill(shared), 512, 0, Batch::Kind::prefill).right, 1);
  EXPECT_EQ(world.run(1, 2, prefill(quiet), 512, 0, Batch::Kind::prefill).right, 1);
}

TEST(ThreadChoice, NeverMoreThanAllowed) {
  World world(1, 4);
  const auto check = [](std::int32_t most) {
    return [most](std::int32_t threads, int) {
      EXPECT_LE(threads, most);
      EXPECT_GE(threads, 1);
      return microseconds(8000 / threads);
    };
  };
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(world.run(20, 1, check(1), 1).right, 20);
    world.run(20, 4, check(4), 8);
    world.run(
        1, 2, [](std::int32_t threads, int) { return threads > 2 ? seconds(3) : milliseconds(9); }, 8);
    EXPECT_LE(world.ceiling(), 2);
    world.rest(seconds(10));
  }
}

TEST(ThreadChoice, HalvesUntilItFits) {
  World world(8);
  world.run(200, 8, quiet);
  const auto two_free = [](std::int32_t threads, int) {
    return threads > 2 ? milliseconds(900) : milliseconds(8 / threads);
  };
  const Outcome outcome = world.run(100, 2, two_free);
  EXPECT_EQ(world.ceiling(), 2);
  EXPECT_LT(outcome.longest, milliseconds(50));
  EXPECT_GE(outcome.right, 95);
  world.rest(seconds(60));
  EXPECT_GE(world.run(100, 8, quiet).right, 90);
}

TEST(ThreadChoice, DeepRowsAreNotStrangled) {
  World world(2);
  const auto deep = [](std::int32_t threads, int) { return milliseconds(64) / threads; };
  world.run(200, 2, quiet, 4, 100);
  EXPECT_EQ(world.run(1, 2, deep, 4, 16000).cuts, 0);
  EXPECT_EQ(world.ceiling(), 2);
}

TEST(ThreadChoice, WhatIsNewIsJudgedByWhatIsKnown) {
  World world(2);
  world.run(10, 2, quiet, 1);
  // 64 rows take at most 64 times what one takes.
  EXPECT_EQ(world
                .run(
                    1, 2, [](std::int32_t threads, int) { return milliseconds(500) / threads; }, 64)
                .cuts,
            0);
  World other(2);
  other.run(10, 2, quiet, 1);
  EXPECT_EQ(other
                .run(
                    1, 1, [](std::int32_t threads, int) { return threads > 1 ? seconds(9) : seconds(1); }, 64)
                .cuts,
            1);
}

TEST(ThreadChoice, NoMoreThanAllowedAndAllAtOnceAfterwards) {
  World world(8);
  world.run(200, 8, quiet);
  world.allow(3);
  EXPECT_EQ(world.run(500, 2, quiet).right + world.run(1, 1, quiet).right, 500) << "of 8, 4, 2 and 1";
  world.allow(8);
  EXPECT_GE(world.run(100, 8, quiet).right, 98);
}

TEST(ThreadChoice, StrangledOnItsPartItUsesFewerOfThem) {
  World world(4);
  world.run(200, 4, quiet);
  world.allow(2);
  const Outcome outcome = world.run(500, 1, shared);
  EXPECT_GE(outcome.right, 450);
  EXPECT_LE(world.ceiling(), 2);
}

}  // namespace
}  // namespace chasqui
