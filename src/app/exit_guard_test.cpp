#include "app/exit_guard.h"

#include <csignal>
#include <optional>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui {
namespace {

// Each in a process of its own: that is what ends.
class ExitGuardDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    configure_log(LogLevel::info, LogFormat::text);
  }
};

[[noreturn]] void wait_forever() {
  for (;;) ::pause();
}

void compute_forever() {
  volatile bool going = true;
  while (going) {
  }
}

net::Awaitable<void> run_forever(net::OffloadPool& pool, Mailbox<int>& started) {
  auto job = [&started] {
    started.push(1);
    compute_forever();
  };
  co_await pool.run(std::move(job));
}

// A server whose pool has a job that never ends, up to the destructor that would join its thread.
void end_with_a_stuck_pool() {
  ExitGuard guard;
  net::NetMetrics metrics;
  net::EventLoop loop(metrics);
  net::OffloadPool pool(loop);
  guard.watch(seconds(600), [&loop] { loop.stop(); });
  Mailbox<int> started(1);
  loop.spawn(run_forever(pool, started), "stuck");
  std::thread teller([&started] {
    std::vector<int> said;
    started.drain(said, Wait::yes);
    ::kill(::getpid(), SIGTERM);
  });
  loop.run();
  teller.join();
  guard.tear_down();
}

TEST_F(ExitGuardDeathTest, AThreadOfThePoolThatNeverEndsIsNamedAndLeftBehind) {
  EXPECT_EXIT(end_with_a_stuck_pool(), testing::ExitedWithCode(0), "parts of the server do not end.*offload-");
}

TEST_F(ExitGuardDeathTest, WhatIsKeptIsLeftBehindWhenItsTimeIsOver) {
  const auto hang = [] {
    ExitGuard guard;
    guard.watch(seconds(3600), [] {});
    guard.tear_down(milliseconds(1));
    wait_forever();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(0), "parts of the server do not end");
}

TEST_F(ExitGuardDeathTest, AShutdownThatHangsIsEndedByForce) {
  const auto hang = [] {
    ExitGuard guard;
    guard.watch(milliseconds(1), [] {});
    ::raise(SIGTERM);
    wait_forever();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(ExitGuard::kForcedExit), "the shutdown hangs");
}

TEST_F(ExitGuardDeathTest, TheSecondSignalDoesNotWaitForThePatienceOfTheFirst) {
  const auto hang = [] {
    ExitGuard guard;
    guard.watch(seconds(3600), [] {});
    ::raise(SIGTERM);
    ::raise(SIGINT);
    wait_forever();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(ExitGuard::kForcedExit), "the shutdown hangs");
}

TEST_F(ExitGuardDeathTest, AHangThatTheServerFindsHasADeadlineToo) {
  const auto hang = [] {
    ExitGuard guard;
    guard.watch(milliseconds(1), [] {});
    guard.begin();
    wait_forever();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(ExitGuard::kForcedExit), "the shutdown hangs");
}

TEST_F(ExitGuardDeathTest, ASignalAfterTheGuardEndsTheProcessAsUsual) {
  const auto raise_late = [] {
    std::optional<ExitGuard> guard(std::in_place);
    guard->watch(seconds(3600), [] {});
    guard.reset();
    ::raise(SIGTERM);
    wait_forever();
  };
  EXPECT_EXIT(raise_late(), testing::KilledBySignal(SIGTERM), "");
}

// How many signals a child of this process counts that sends itself one and gets SIGTERM and SIGINT of this process.
// The last one that counts ends it.
int counted(ExitGuard::Parent parent) {
  int ends[2] = {-1, -1};
  CHECK(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ExitGuard guard;
    guard.watch(
        seconds(3600), [fd = ends[1]] { CHECK(::write(fd, "s", 1) == 1); }, parent);
    ::raise(SIGTERM);
    wait_forever();
  }
  ::close(ends[1]);
  int told = 0;
  for (char c = 0; ::read(ends[0], &c, 1) == 1;) {
    if (++told > 1) continue;
    ::kill(child, SIGTERM);
    ::kill(child, SIGINT);
  }
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == ExitGuard::kForcedExit ? told : 0;
}

TEST_F(ExitGuardDeathTest, ASignalThatAlsoComesFromTheSupervisorCountsOnce) {
  EXPECT_EXIT(::_exit(counted(ExitGuard::Parent::supervisor)), testing::ExitedWithCode(2), "");
  EXPECT_EXIT(::_exit(counted(ExitGuard::Parent::any)), testing::ExitedWithCode(3), "");
}

TEST(ExitGuard, TellsOfEachSignalUntilTheTearDown) {
  Mailbox<int> told(8);
  ExitGuard guard;
  guard.watch(seconds(3600), [&told] { told.push(1); });
  ::raise(SIGTERM);
  std::vector<int> heard;
  told.drain(heard, Wait::yes);
  EXPECT_EQ(heard.size(), 1u);
  guard.tear_down();
}

TEST(ExitGuard, WithoutAWatchDoesNothing) {
  ExitGuard guard;
  guard.tear_down();
}

}  // namespace
}  // namespace chasqui
