// One more in a count and in the gauge of its sum, for as long as this object lives: a request that waits. Loop thread.
#pragma once

#include <cstddef>

#include "base/metrics.h"

namespace chasqui {

class WaitingCount {
 public:
  WaitingCount(std::size_t& count, Gauge& gauge) : count_(count), gauge_(gauge) {
    ++count_;
    gauge_.add(1);
  }
  ~WaitingCount() {
    --count_;
    gauge_.add(-1);
  }
  WaitingCount(const WaitingCount&) = delete;
  WaitingCount& operator=(const WaitingCount&) = delete;

 private:
  std::size_t& count_;
  Gauge& gauge_;
};

}  // namespace chasqui
