// The promises that a simulated run saw broken, with the step and the time. Owned by the simulation; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace chasqui {

class Faults {
 public:
  void step(std::uint64_t step, TimePoint now) {
    step_ = step;
    now_ = now;
  }
  // `promise` begins with the name of the invariant. `serial`: which request of the workload; 0: none in particular.
  void expect(bool kept, std::string_view promise, std::uint64_t serial = 0) {
    if (!kept) [[unlikely]]
      add(promise, serial);
  }
  bool any() const { return count_ > 0; }
  std::uint64_t count() const { return count_; }
  // The first ones.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  void add(std::string_view promise, std::uint64_t serial) {
    constexpr std::size_t kKept = 16;
    ++count_;
    if (lines_.size() == kKept) return;
    std::string line = "step " + std::to_string(step_) + ", " +
                       std::to_string(now_.time_since_epoch() / microseconds(1)) + " us: " + std::string(promise);
    if (serial != 0) line += " (request " + std::to_string(serial) + ')';
    lines_.push_back(std::move(line));
  }

  std::uint64_t step_ = 0;
  TimePoint now_{};
  std::uint64_t count_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace chasqui
