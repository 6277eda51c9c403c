// The loop: one thread that owns every socket, timer and coroutine of the process. Runs in the thread that calls
// run(). Everything is loop thread only (or before run()), except post(), stop() and heartbeat(), which any thread
// may call. Must outlive everything that was made with it.
//
// loop-never-blocks: a turn is one pass over what was ready. turn_begins(), called wherever net is woken, opens a
// turn; the turn ends when everything that was ready then has run. Turns over kStall are counted and logged.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "net/awaitable.h"
#include "net/net_metrics.h"

namespace chasqui::net {

class EventLoop {
 public:
  static constexpr Duration kStall = milliseconds(5);

  explicit EventLoop(NetMetrics& metrics);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Returns after stop(). What the caller of stop() posted before it has run by then.
  void run();
  void stop();

  // Runs `function` on the loop, never inside the caller. Any thread.
  void post(std::function<void()> function);

  // Starts a detached coroutine. An exception that leaves it is logged under `name` and counted.
  // `name` is a literal.
  void spawn(Awaitable<void> coroutine, std::string_view name);
  // Runs a coroutine to its end, with the same guard. False when an exception left it.
  Awaitable<bool> guard(Awaitable<void> coroutine, std::string_view name);

  // Calls `callback` on the loop each time that the process gets `signal_number`.
  void on_signal(int signal_number, std::function<void()> callback);

  // The last time the loop was seen alive, at most a second ago when it is well. Any thread.
  TimePoint heartbeat() const { return TimePoint(Duration(heartbeat_.load(std::memory_order_relaxed))); }

  Executor executor() { return context_.get_executor(); }
  TimePoint now() const { return clock_.now(); }
  std::int64_t unix_seconds() const { return clock_.unix_seconds(); }
  NetMetrics& metrics() { return metrics_; }

  void turn_begins() {
    if (!in_turn_) open_turn();
  }

 private:
  struct SignalWatch;

  void open_turn();
  void close_turn();
  void wait_for_signal(SignalWatch& watch);
  void beat();

  RealClock clock_;
  NetMetrics& metrics_;
  asio::io_context context_;
  Timer beat_timer_;
  std::vector<std::unique_ptr<SignalWatch>> signals_;
  std::atomic<Duration::rep> heartbeat_;
  bool in_turn_ = false;
  TimePoint turn_start_{};
  TimePoint last_stall_log_{};
};

}  // namespace chasqui::net
