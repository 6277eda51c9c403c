// Whether a command is to end early: a descriptor that becomes readable then (of signals, say), which its owner keeps
// open. A plain value; one thread.
#pragma once

#include <algorithm>
#include <chrono>

#include <poll.h>

#include "base/clock.h"

namespace chasqui::pull {

class StopSign {
 public:
  // Without a descriptor it is never set.
  explicit StopSign(int fd = -1) : fd_(fd) {}

  bool is_set() const { return wait(Duration::zero()); }
  // Until it is set, and then true, or until the time is over.
  bool wait(Duration time) const {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(time, Duration::zero())).count();
    pollfd one{fd_, POLLIN, 0};
    return ::poll(&one, 1, static_cast<int>(ms)) > 0;
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace chasqui::pull
