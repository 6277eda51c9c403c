// Calls a function on the loop each time that another thread signals a Wakeup: after the signal was acknowledged, so
// that nothing posted before a signal is missed; many signals may be one call. Where the Wakeup has no descriptor,
// the function is called every 2 ms. Owned with the Wakeup, which must outlive it; loop thread only (construct before
// or on the loop). After destruction the function is not called again.
#pragma once

#include <functional>
#include <memory>

#include "base/wakeup.h"
#include "net/event_loop.h"

namespace chasqui::net {

class WakeupListener {
 public:
  WakeupListener(EventLoop& loop, Wakeup& wakeup, std::function<void()> on_wakeup);
  ~WakeupListener();
  WakeupListener(const WakeupListener&) = delete;
  WakeupListener& operator=(const WakeupListener&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace chasqui::net
