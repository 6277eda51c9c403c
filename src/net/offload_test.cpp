#include "net/offload.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/mailbox.h"

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
  Awaitable<void> hold(Mailbox<int>& word, std::function<bool()> gone = {}, Duration can_wait = {}) {
    auto work = [&word] {
      std::vector<int> words;
      word.drain(words, Wait::yes);
      return 1;
    };
    const Result<int> result = co_await pool_->run(std::move(work), can_wait, std::move(gone));
    outcomes_ += result ? "ran " : std::string(name(result.error().code)) + " ";
    if (++ended_ == expected_) loop_.stop();
  }

  Awaitable<void> tell(std::string name, Duration can_wait) {
    auto nothing = [] {};
    co_await pool_->run(std::move(nothing), can_wait);
    outcomes_ += name;
    if (++ended_ == expected_) loop_.stop();
  }

  Awaitable<void> short_among_long(Mailbox<int>& word) {
    co_await tell("short ", {});
    EXPECT_EQ(pool_->waiting(), 4u);
    word.close();
  }

  Awaitable<void> recurse() {
    auto work = [] { return deep(40'000); };
    const Result<int> result = co_await pool_->run(std::move(work));
    EXPECT_EQ(result.value(), 40'000);
    loop_.stop();
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
  for (int i = 0; i < 3; ++i) loop_.spawn(hold(word, [&left] { return left; }), "test");  // one runs, two wait
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

TEST_F(OffloadTest, WhoCanWaitLetsOthersPass) {
  start({.threads = 1});
  Mailbox<int> word(10);
  expected_ = 5;
  loop_.spawn(hold(word), "test");
  for (const auto& [name, can_wait] : {std::pair("patient ", seconds(1000)), std::pair("second ", seconds(100)),
                                       std::pair("first ", seconds(0)), std::pair("third ", seconds(100))}) {
    loop_.spawn(tell(name, can_wait), "test");
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
    loop_.spawn(hold(word, {}, OffloadPool::kLong), "test");  // one runs, four wait, one may not
  loop_.post([&] {
    EXPECT_EQ(outcomes_, "overloaded ");
    EXPECT_EQ(pool_->waiting(), 4u);
    loop_.spawn(short_among_long(word), "test");
  });
  loop_.run();
  EXPECT_EQ(outcomes_, "overloaded short ran ran ran ran ran ");
}

TEST_F(OffloadTest, GivesRecursionRoom) {
  start();
  loop_.spawn(recurse(), "test");
  loop_.run();
}

TEST_F(OffloadTest, EndsWithJobsThatNobodyWaitsFor) {
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

TEST_F(OffloadTest, TellsOfThreadsThatAreStuck) {
  start({.threads = 2});
  Mailbox<int> word(10);
  expected_ = 1;
  loop_.spawn(hold(word), "test");
  loop_.post([&] {
    const TimePoint now = loop_.now();
    EXPECT_EQ(pool_->stuck_threads(now), 0u);
    EXPECT_EQ(pool_->stuck_threads(now + OffloadPool::kStuckAfter + seconds(1)), 1u) << "the other one is idle";
    word.close();
  });
  loop_.run();
  EXPECT_EQ(pool_->stuck_threads(loop_.now() + seconds(1000)), 0u);
}

}  // namespace
}  // namespace chasqui::net
