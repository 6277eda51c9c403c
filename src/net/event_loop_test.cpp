#include "net/event_loop.h"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>

#include "net/event_signal.h"

namespace chasqui::net {
namespace {

Awaitable<void> throw_up() {
  throw std::runtime_error("on purpose");
  co_return;
}

Awaitable<void> guarded(EventLoop& loop, std::string& log) {
  const bool first = co_await loop.guard(throw_up(), "test");
  log += first ? "returned" : "threw";
  loop.stop();
}

Awaitable<void> wait_twice(EventLoop& loop, EventSignal& signal, std::string& log) {
  const bool first = co_await signal.wait_until(kNever);
  log += first ? "notified " : "late ";
  const bool second = co_await signal.wait_until(loop.now());
  log += second ? "notified" : "late";
  loop.stop();
}

TEST(EventLoop, RunsWhatOtherThreadsPost) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  int ran = 0;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) loop.post([&] { ++ran; });
    loop.stop();
  });
  loop.run();
  other.join();
  EXPECT_EQ(ran, 100);
}

TEST(EventLoop, RunsAgainAfterAStop) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  loop.stop();
  loop.run();
  bool ran = false;
  loop.post([&] { ran = true; });
  loop.stop();
  loop.run();
  EXPECT_TRUE(ran);
}

TEST(EventLoop, CountsExceptionsThatLeaveCoroutines) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  std::string log;
  loop.spawn(throw_up(), "test");
  loop.spawn(guarded(loop, log), "test");
  loop.run();
  EXPECT_EQ(metrics.lost_exceptions.value(), 2u);
  EXPECT_EQ(log, "threw");
}

TEST(EventLoop, CallsBackOnSignals) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  int hangups = 0;
  loop.on_signal(SIGHUP, [&] {
    if (++hangups == 2) return loop.stop();
    std::raise(SIGHUP);
  });
  loop.on_signal(SIGTERM, [&] { std::raise(SIGHUP); });
  loop.post([] { std::raise(SIGTERM); });
  loop.run();
  EXPECT_EQ(hangups, 2);
}

TEST(EventLoop, CountsTurnsThatTakeLong) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  loop.post([&] {
    const TimePoint start = loop.now();
    while (loop.now() < start + 2 * EventLoop::kStall) {
    }
  });
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(metrics.loop_stalls.value(), 1u);
}

TEST(EventLoop, HasAHeartbeat) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  const TimePoint before = loop.now();
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_GE(loop.heartbeat(), before);
  EXPECT_LE(loop.heartbeat(), loop.now());
}

TEST(EventSignal, WakesItsWaiterOrTimesOut) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  EventSignal signal(loop);
  std::string log;
  loop.spawn(wait_twice(loop, signal, log), "test");
  loop.post([&] {
    signal.notify();
    signal.notify();  // counts once
  });
  loop.run();
  EXPECT_EQ(log, "notified late");
}

TEST(EventSignal, RemembersANotification) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  EventSignal signal(loop);
  std::string log;
  signal.notify();
  loop.spawn(wait_twice(loop, signal, log), "test");
  loop.run();
  EXPECT_EQ(log, "notified late");
}

TEST(NetMetrics, ShowsEverything) {
  NetMetrics metrics;
  MetricsPage page;
  metrics.count_response(204);
  metrics.count_response(999);
  metrics.add_to(page);
  const std::string text = page.render();
  EXPECT_NE(text.find("chasqui_http_responses_total{class=\"2xx\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("chasqui_http_responses_total{class=\"5xx\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("chasqui_loop_stalls_total 0\n"), std::string::npos);
}

}  // namespace
}  // namespace chasqui::net
