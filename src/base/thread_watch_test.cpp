#include "base/thread_watch.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/mailbox.h"
#include "base/thread_time.h"

namespace chasqui {
namespace {

TEST(ThreadWatch, TellsAThreadThatComputesFromOneThatWaits) {
  Mailbox<const ThreadWatch*> arrived(1);
  Mailbox<int> word(1);
  std::atomic<bool> spins{true};
  std::thread other([&] {
    const ThreadWatch watch;
    arrived.push(&watch);
    while (spins) {
    }
    std::vector<int> words;
    word.drain(words, Wait::yes);
  });
  std::vector<const ThreadWatch*> watches;
  arrived.drain(watches, Wait::yes);
  const ThreadWatch& watch = *watches.front();
  const Duration before = watch.computed();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(watch.sleeps());
  while (watch.computed() < before + milliseconds(1)) std::this_thread::yield();
  spins = false;
  while (!watch.sleeps()) std::this_thread::yield();
  word.close();
  other.join();
}

TEST(ThreadWatch, KnowsWhenTheThreadHasWaited) {
  const TimePoint now{seconds(7)};
  ThreadWatch::has_waited(now);  // it is not watched
  const ThreadWatch watch;
  EXPECT_LT(watch.waited(), now);
  std::thread([&] { ThreadWatch::has_waited(now); }).join();
  EXPECT_LT(watch.waited(), now) << "that was another one";
  ThreadWatch::has_waited(now);
  EXPECT_EQ(watch.waited(), now);
}

TEST(ThreadWatch, CountsWhatTheThreadItselfCounts) {
  const ThreadWatch watch;
  const Duration before = thread_time();
  const Duration between = watch.computed();
  EXPECT_LE(before, between);
  EXPECT_LE(between, thread_time());
}

}  // namespace
}  // namespace chasqui
