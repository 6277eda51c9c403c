// Whether a model that is to go before its next version is loaded has been told to sleep, and still will. Owned by a
// swap of ModelKeeper; loop thread.
#pragma once

#include <cstdint>

namespace chasqui {

class RestOrder {
 public:
  // Asked again and again while the model is awake: whether to tell it now. `wakes`: how often it has woken so far. A
  // request that was on its way may keep it awake, or wake it, and end before the next look.
  bool due(bool works, std::uint64_t wakes) {
    const bool holds = told_ && wakes == wakes_;
    told_ = !works;
    wakes_ = wakes;
    return told_ && !holds;
  }

 private:
  bool told_ = false;
  std::uint64_t wakes_ = 0;  // when it was told
};

}  // namespace chasqui
