// Raised once, by any thread, and seen by any other a little later; nothing else is ordered by it. A request
// to work that is under way elsewhere.
#pragma once

#include <atomic>

namespace chasqui {

class Flag {
 public:
  void raise() { raised_.store(true, std::memory_order_relaxed); }
  bool raised() const { return raised_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> raised_ = false;
};

}  // namespace chasqui
