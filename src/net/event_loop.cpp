#include "net/event_loop.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <exception>
#include <utility>

#include "base/log.h"

namespace chasqui::net {
namespace {

constexpr Duration kBeat = seconds(1);

std::string describe(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "not a std::exception";
  }
}

}  // namespace

struct EventLoop::SignalWatch {
  SignalWatch(Executor executor, int number, std::function<void()> function)
      : signals(executor, number), callback(std::move(function)) {}

  asio::basic_signal_set<Executor> signals;
  std::function<void()> callback;
};

EventLoop::EventLoop(NetMetrics& metrics)
    : metrics_(metrics), context_(1), beat_timer_(context_.get_executor()), heartbeat_(0) {
  beat();
}

EventLoop::~EventLoop() = default;

void EventLoop::run() {
  context_.restart();
  context_.run();
}

void EventLoop::stop() {
  asio::post(context_, [this] { context_.stop(); });
}

void EventLoop::post(std::function<void()> function) {
  asio::post(context_, [this, function = std::move(function)] {
    turn_begins();
    function();
  });
}

void EventLoop::spawn(Awaitable<void> coroutine, std::string_view name) {
  asio::co_spawn(context_.get_executor(), std::move(coroutine), [this, name](std::exception_ptr exception) {
    if (!exception) return;
    metrics_.lost_exceptions.add();
    log_error("exception left a coroutine", {{"coroutine", name}, {"what", describe(exception)}});
  });
}

Awaitable<bool> EventLoop::guard(Awaitable<void> coroutine, std::string_view name) {
  std::exception_ptr exception;
  try {
    co_await std::move(coroutine);
  } catch (...) {
    exception = std::current_exception();
  }
  if (!exception) co_return true;
  metrics_.lost_exceptions.add();
  log_error("exception left a coroutine", {{"coroutine", name}, {"what", describe(exception)}});
  co_return false;
}

void EventLoop::on_signal(int signal_number, std::function<void()> callback) {
  signals_.push_back(std::make_unique<SignalWatch>(context_.get_executor(), signal_number, std::move(callback)));
  wait_for_signal(*signals_.back());
}

void EventLoop::wait_for_signal(SignalWatch& watch) {
  watch.signals.async_wait([this, &watch](SystemError error, int) {
    if (error) return;
    turn_begins();
    wait_for_signal(watch);
    watch.callback();
  });
}

void EventLoop::open_turn() {
  in_turn_ = true;
  turn_start_ = now();
  // Runs after everything that is ready now.
  asio::post(context_, [this] { close_turn(); });
}

void EventLoop::close_turn() {
  in_turn_ = false;
  const TimePoint end = now();
  heartbeat_.store(end.time_since_epoch().count(), std::memory_order_relaxed);
  if (end - turn_start_ <= kStall) return;
  metrics_.loop_stalls.add();
  if (end - last_stall_log_ < seconds(1)) return;
  last_stall_log_ = end;
  log_warning("the event loop was held up", {{"milliseconds", to_milliseconds(end - turn_start_)}});
}

void EventLoop::beat() {
  heartbeat_.store(now().time_since_epoch().count(), std::memory_order_relaxed);
  beat_timer_.expires_after(kBeat);
  beat_timer_.async_wait([this](SystemError error) {
    if (!error) beat();
  });
}

}  // namespace chasqui::net
