// A condition that one coroutine of the loop waits for and anything on the loop can set. Sticky: a notify() without
// a waiter makes the next wait return at once. Owned by the waiter; must outlive the wait. Loop thread only;
// other threads go through EventLoop::post or a WakeupListener.
#pragma once

#include "base/clock.h"
#include "net/awaitable.h"
#include "net/event_loop.h"

namespace chasqui::net {

class EventSignal {
 public:
  explicit EventSignal(EventLoop& loop);
  EventSignal(const EventSignal&) = delete;
  EventSignal& operator=(const EventSignal&) = delete;

  // True when notified since the last wait, false when `deadline` came first. REQUIRES: there is no other waiter.
  Awaitable<bool> wait_until(TimePoint deadline);
  Awaitable<bool> wait() { return wait_until(kNever); }

  // Never resumes the waiter from within; it runs later in the same turn or in the next.
  void notify();

 private:
  EventLoop& loop_;
  Timer timer_;  // the wait; its expiry is the deadline, its cancellation the notification
  bool notified_ = false;
  bool waiting_ = false;
};

}  // namespace chasqui::net
