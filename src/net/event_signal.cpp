#include "net/event_signal.h"

#include <utility>

#include "base/error.h"

namespace chasqui::net {

EventSignal::EventSignal(EventLoop& loop) : loop_(loop), timer_(loop.executor()) {}

Awaitable<bool> EventSignal::wait_until(TimePoint deadline) {
  CHECK(!waiting_, "a signal has one waiter");
  if (!notified_) {
    waiting_ = true;
    timer_.expires_at(deadline);
    co_await timer_.async_wait(kAwait);
    waiting_ = false;
    loop_.turn_begins();
  }
  // Asked of the flag, not of the timer's error: both may have happened before we were resumed.
  co_return std::exchange(notified_, false);
}

void EventSignal::notify() {
  if (notified_) return;
  notified_ = true;
  if (waiting_) timer_.cancel();
}

}  // namespace chasqui::net
