#include "model/thread_choice.h"

#include <functional>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

using Cost = std::function<Duration(std::int32_t threads, int step)>;

struct Outcome {
  int right = 0;  // steps with the expected number of threads
  int last_wrong = -1;
  Duration spent{};
};

class World {
 public:
  explicit World(std::int32_t most) : choice_(most) {}

  Outcome run(int steps, std::int32_t expected, const Cost& cost, std::size_t rows = 4) {
    Outcome outcome;
    for (int step = 0; step < steps; ++step) {
      const std::int32_t threads = choice_.choose(Batch::Kind::decode, rows, clock_.now());
      const Duration took = cost(threads, step);
      clock_.advance(took);
      choice_.observe(took, clock_.now());
      outcome.spent += took;
      if (threads == expected) {
        ++outcome.right;
      } else {
        outcome.last_wrong = step;
      }
    }
    return outcome;
  }

 private:
  ManualClock clock_;
  ThreadChoice choice_;
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

TEST(ThreadChoice, FollowsWhatChanges) {
  World world(2);
  world.run(500, 2, quiet);
  const Outcome busy = world.run(500, 1, shared);
  EXPECT_GE(busy.right, 495);
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
  // The first guess is what was right before, and a trial waits until the last one, which took long, is paid for.
  EXPECT_GE(world.run(10000, 2, quiet, 64).right, 5000);
  EXPECT_GE(world.run(200, 1, shared, 1).right, 195);
  EXPECT_GE(world.run(200, 1, shared, 512).right, 195);
}

}  // namespace
}  // namespace chasqui
