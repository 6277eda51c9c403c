#include "net/offload.h"

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/mailbox.h"
#include "base/thread_watch.h"

namespace chasqui::net {
namespace {

class OffloadTest : public testing::Test {
 protected:
  OffloadTest() : loop_(metrics_) {}

  void start(OffloadOptions options = {}) { pool_.emplace(loop_, std::move(options)); }

  Awaitable<void> run_kinds() {
    const auto loop_thread = std::this_thread::get_id();
    auto number = [loop_thread] { return std::this_thread::get_id() == loop_thread ? 0 : 42; };
    const Result<int> a = co_await pool_->run(std::move(number));
    EXPECT_EQ(a.value(), 42);
    EXPECT_EQ(std::this_thread::get_id(), loop_thread);

    auto refused = [] { return Result<std::string>(Error{ErrorCode::conflict, "no", {}}); };
    const Result<std::string> b = co_await pool_->run(std::move(refused));
    EXPECT_EQ(b.error().code, ErrorCode::conflict);

    auto nothing = [] {};
    const Result<void> c = co_await pool_->run(std::move(nothing));
    EXPECT_TRUE(c.has_value());

    auto throwing = []() -> int { throw std::runtime_error("on purpose"); };
    const Result<int> d = co_await pool_->run(std::move(throwing));
    EXPECT_EQ(d.error().code, ErrorCode::internal);
    loop_.stop();
  }

  // Holds its thread until a word comes.
  Awaitable<void> hold(Mailbox<int>& word, OffloadTerms terms = {}, std::function<void()> first = {}) {
    auto work = [&word, first = std::move(first)] {
      if (first) first();
      std::vector<int> words;
      word.drain(words, Wait::yes);
      return 1;
    };
    const Result<int> result = co_await pool_->run(std::move(work), std::move(terms));
    outcomes_ += result ? "ran " : std::string(name(result.error().code)) + " ";
    if (++ended_ == expected_) loop_.stop();
  }

  // Computes until it is told to end.
  Awaitable<void> spin(std::atomic<int>& turns, const std::atomic<bool>& ends) {
    auto work = [&turns, &ends] {
      while (!ends) turns = 1;
    };
    co_await pool_->run(std::move(work));
    if (++ended_ == expected_) loop_.stop();
  }

  Awaitable<void> tell(std::string name, OffloadTerms terms) {
    auto nothing = [] {};
    const Result<void> result = co_await pool_->run(std::move(nothing), std::move(terms));
    outcomes_ += (result ? "" : "no ") + name;
    if (++ended_ == expected_) loop_.stop();
  }

  Awaitable<void> short_among_long(Mailbox<int>& word) {
    OffloadTerms terms;
    co_await tell("short ", std::move(terms));
    EXPECT_EQ(pool_->waiting(), 4u);
    word.close();
  }

  Awaitable<void> recurse() {
    auto work = [] { return deep(40'000); };
    const Result<int> result = co_await pool_->run(std::move(work));
    EXPECT_EQ(result.value(), 40'000);
    loop_.stop();
  }

  static OffloadTerms terms(std::uint32_t owner, std::size_t bytes = 0, Duration can_wait = {}) {
    OffloadTerms terms;
    terms.owner = owner;
    terms.bytes = bytes;
    terms.can_wait = can_wait;
    return terms;
  }

  static OffloadTerms until(bool& left) {
    OffloadTerms terms;
    terms.gone = [&left] { return left; };
    return terms;
  }

  static int deep(int levels) {
    volatile char frame[512] = {};  // 20 MB in all, more than a thread has by default
    frame[levels % 512] = 1;
    return levels == 0 ? 0 : deep(levels - 1) + frame[levels % 512];
  }

  NetMetrics metrics_;
  EventLoop loop_;
  std::optional<OffloadPool> pool_;
  std::string outcomes_;
  int ended_ = 0;
  int expected_ = 0;
};

TEST_F(OffloadTest, RunsElsewhereAndResumesHere) {
  start();
  loop_.spawn(run_kinds(), "test");
  loop_.run();
}

TEST_F(OffloadTest, TellsWhenAllJobsUntilOneHaveEnded) {
  start({.threads = 1, .queue_jobs = 4});
  Mailbox<int> word(10);
  expected_ = 2;
  EXPECT_TRUE(pool_->ended_until(pool_->newest()));
  for (int i = 0; i < 2; ++i) loop_.spawn(hold(word), "test");  // one runs, one waits
  loop_.post([&] {
    EXPECT_EQ(pool_->newest(), 2u);
    EXPECT_TRUE(pool_->ended_until(0));
    EXPECT_FALSE(pool_->ended_until(1));
    EXPECT_FALSE(pool_->ended_until(2));
    word.close();
  });
  loop_.run();
  EXPECT_TRUE(pool_->ended_until(2));
}

TEST_F(OffloadTest, RefusesWhatDoesNotFit) {
  start({.threads = 1, .queue_jobs = 2});
  Mailbox<int> word(10);
  expected_ = 4;
  for (int i = 0; i < 4; ++i) loop_.spawn(hold(word), "test");  // one runs, two wait, one is refused
  loop_.post([&] {
    EXPECT_EQ(outcomes_, "overloaded ");
    EXPECT_EQ(pool_->waiting(), 2u);
    word.close();
  });
  loop_.run();
  EXPECT_EQ(outcomes_, "overloaded ran ran ran ");
  MetricsPage page;
  pool_->add_to(page);
  EXPECT_NE(page.render().find("chasqui_offload_refused_total 1\n"), std::string::npos);
}

TEST_F(OffloadTest, WhoLeftMakesRoomForOthers) {
  start({.threads = 1, .queue_jobs = 2});
  Mailbox<int> word(10);
  bool left = false;
  expected_ = 5;
  for (int i = 0; i < 3; ++i) loop_.spawn(hold(word, until(left)), "test");  // one runs, two wait
  loop_.post([&] {
    left = true;
    loop_.spawn(hold(word), "test");
    loop_.spawn(hold(word), "test");
    EXPECT_EQ(pool_->waiting(), 2u) << "the two that came later";
  });
  loop_.post([&] { word.close(); });
  loop_.run();
  EXPECT_EQ(outcomes_, "unavailable unavailable ran ran ran ") << "who runs already does so to the end";
  MetricsPage page;
  pool_->add_to(page);
  EXPECT_NE(page.render().find("chasqui_offload_dropped_total 2\n"), std::string::npos);
}

// A connection watches its client from when it is first asked. One that left while its job waited was believed to be
// there when its turn came.
TEST_F(OffloadTest, AsksForTheClientOfAJobWhenTheJobComes) {
  start({.threads = 1});
  Mailbox<int> word(10);
  bool watched = false;
  expected_ = 3;
  loop_.spawn(hold(word), "test");
  for (int i = 0; i < 2; ++i) {
    OffloadTerms terms;
    terms.gone = [&watched] { return std::exchange(watched, true); };
    loop_.spawn(hold(word, std::move(terms)), "test");
  }
  loop_.post([&] {
    EXPECT_TRUE(watched) << "while both wait";
    word.close();
  });
  loop_.run();
  EXPECT_EQ(outcomes_, "ran unavailable unavailable ");
}

TEST_F(OffloadTest, WhoCanWaitLetsOthersPass) {
  start({.threads = 1});
  Mailbox<int> word(10);
  expected_ = 5;
  loop_.spawn(hold(word), "test");
  for (const auto& [name, can_wait] : {std::pair("patient ", seconds(1000)), std::pair("second ", seconds(100)),
                                       std::pair("first ", seconds(0)), std::pair("third ", seconds(100))}) {
    loop_.spawn(tell(name, terms(0, 0, can_wait)), "test");
  }
  loop_.post([&] { word.close(); });
  loop_.run();
  EXPECT_EQ(outcomes_, "ran first second third patient ");
}

TEST_F(OffloadTest, LongJobsHaveNeitherAllThreadsNorTheWholeQueue) {
  start({.threads = 2, .queue_jobs = 8});
  Mailbox<int> word(10);
  expected_ = 7;
  for (int i = 0; i < 6; ++i)
    loop_.spawn(hold(word, terms(0, 0, OffloadPool::kLong)), "test");  // one runs, four wait, one may not
  loop_.post([&] {
    EXPECT_EQ(outcomes_, "overloaded ");
    EXPECT_EQ(pool_->waiting(), 4u);
    loop_.spawn(short_among_long(word), "test");
  });
  loop_.run();
  EXPECT_EQ(outcomes_, "overloaded short ran ran ran ran ran ");
}

TEST_F(OffloadTest, OwnersTakeTurns) {
  start({.threads = 1});
  Mailbox<int> word(10);
  expected_ = 9;
  loop_.spawn(hold(word, terms(1)), "test");
  for (const char* name : {"a1 ", "a2 ", "a3 ", "a4 "}) loop_.spawn(tell(name, terms(1)), "test");
  for (const char* name : {"b1 ", "b2 "}) loop_.spawn(tell(name, terms(2)), "test");
  for (const char* name : {"c1 ", "c2 "}) loop_.spawn(tell(name, terms(3, 0, seconds(1000))), "test");
  loop_.post([&] { word.close(); });
  loop_.run();
  EXPECT_EQ(outcomes_.find("ran "), 0u);
  // The first owner has had a thread before, the others have not. How long each job takes is not known here.
  EXPECT_GT(outcomes_.find("a1 "), outcomes_.find("b1 ")) << outcomes_;
  EXPECT_GT(outcomes_.find("a1 "), outcomes_.find("c1 ")) << outcomes_;
  EXPECT_LT(outcomes_.find("a1 "), outcomes_.find("a4 ")) << outcomes_;
}

TEST_F(OffloadTest, AnOwnerCannotFillTheQueueForOthers) {
  start({.threads = 1, .queue_jobs = 3});
  Mailbox<int> word(10);
  expected_ = 7;
  loop_.spawn(hold(word, terms(1)), "test");
  for (const char* name : {"a1 ", "a2 ", "a3 ", "a4 "}) loop_.spawn(tell(name, terms(1)), "test");
  for (const char* name : {"b1 ", "b2 "}) loop_.spawn(tell(name, terms(2)), "test");
  loop_.post([&] {
    EXPECT_EQ(pool_->waiting(), 3u);
    word.close();
  });
  loop_.run();
  // The newest of the owner with most gives way; of owners with equally many none does.
  for (const char* name : {"no a4 ", "no a3 ", "no b2 "}) EXPECT_NE(outcomes_.find(name), std::string::npos) << name;
  EXPECT_NE(outcomes_.find("ran b1 a1 a2 "), std::string::npos) << outcomes_;
}

TEST_F(OffloadTest, BytesThatWaitAreBounded) {
  OffloadOptions options;
  options.threads = 1;
  options.queue_bytes = 100;
  start(std::move(options));
  Mailbox<int> word(10);
  expected_ = 6;
  loop_.spawn(hold(word, terms(1, 1000)), "test");
  loop_.spawn(tell("large ", terms(1, 500)), "test");  // alone it may be as large as it likes
  loop_.spawn(tell("more ", terms(1, 1)), "test");
  loop_.spawn(tell("empty ", terms(1, 0)), "test");
  loop_.post([&] {
    EXPECT_EQ(outcomes_, "no more no empty ");
    loop_.spawn(tell("b1 ", terms(2, 60)), "test");  // in place of "large"
    loop_.spawn(tell("b2 ", terms(2, 60)), "test");
    loop_.post([&] { word.close(); });
  });
  loop_.run();
  for (const char* name : {"no large ", "no b2 "}) EXPECT_NE(outcomes_.find(name), std::string::npos) << name;
  EXPECT_NE(outcomes_.find("ran b1 "), std::string::npos) << outcomes_;
}

TEST_F(OffloadTest, GivesRecursionRoom) {
  start();
  loop_.spawn(recurse(), "test");
  loop_.run();
}

TEST_F(OffloadTest, EndsWithJobsWithoutWaiters) {
  start({.threads = 1});
  Mailbox<int> word(10);
  expected_ = 100;
  for (int i = 0; i < 3; ++i) loop_.spawn(hold(word), "test");
  loop_.post([&] { loop_.stop(); });
  loop_.run();
  word.close();
  pool_.reset();  // waits for the running job, drops the others
  EXPECT_EQ(outcomes_, "");
}

TEST_F(OffloadTest, TellsOfThreadsThatSleepForTooLong) {
  start({.threads = 2});
  Mailbox<int> word(10);
  expected_ = 1;
  loop_.spawn(hold(word), "test");
  const Duration most = OffloadOptions().stuck_after;
  const std::function<void()> look = [&] {
    const TimePoint now = loop_.now();
    EXPECT_EQ(pool_->stuck_threads(now), 0u);
    // The thread may not sleep yet.
    if (pool_->stuck_threads(now + most + seconds(1)) == 0) return loop_.post(look);
    EXPECT_EQ(pool_->stuck_threads(now + most + seconds(1)), 1u) << "the other one is idle";
    word.close();
  };
  loop_.post(look);
  loop_.run();
  EXPECT_EQ(pool_->stuck_threads(loop_.now() + seconds(1000)), 0u);
}

TEST_F(OffloadTest, AThreadThatHasWaitedForAnotherProcessIsNotStuck) {
  start({.threads = 1});
  Mailbox<int> word(10);
  expected_ = 1;
  const Duration most = OffloadOptions().stuck_after;
  const TimePoint later = loop_.now() + most + seconds(1);
  std::atomic<bool> said = false;
  const auto wait = [&] {
    ThreadWatch::has_waited(later);
    said = true;
  };
  loop_.spawn(hold(word, {}, wait), "test");
  const std::function<void()> look = [&] {
    if (!said || pool_->stuck_threads(later + most + seconds(1)) == 0) return loop_.post(look);
    EXPECT_EQ(pool_->stuck_threads(later), 0u) << "it sleeps, and its job began too long ago";
    word.close();
  };
  loop_.post(look);
  loop_.run();
}

TEST_F(OffloadTest, WaitingForAProcessorIsNotBeingStuck) {
  start({.threads = 1});
  expected_ = 1;
  std::atomic<int> turns = 0;
  std::atomic<bool> ends = false;
  loop_.spawn(spin(turns, ends), "test");
  const std::function<void()> look = [&] {
    if (turns == 0) return loop_.post(look);
    // As much later, and yet it has computed next to nothing.
    EXPECT_EQ(pool_->stuck_threads(loop_.now() + seconds(1000)), 0u);
    ends = true;
  };
  loop_.post(look);
  loop_.run();
}

TEST_F(OffloadTest, TellsOfThreadsThatComputeForTooLong) {
  OffloadOptions options;
  options.threads = 1;
  options.stuck_after = milliseconds(1);
  start(std::move(options));
  expected_ = 1;
  std::atomic<int> turns = 0;
  std::atomic<bool> ends = false;
  loop_.spawn(spin(turns, ends), "test");
  const std::function<void()> look = [&] {
    if (pool_->stuck_threads(loop_.now()) == 0) return loop_.post(look);
    ends = true;
  };
  loop_.post(look);
  loop_.run();
  EXPECT_GT(turns, 0);
}

}  // namespace
}  // namespace chasqui::net
