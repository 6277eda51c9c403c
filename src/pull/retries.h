// How often, and after which pause, what broke off is tried again: so many times in a row, with pauses that double.
// A try that brought something counts as a new beginning, so that a long download outlives any number of breaks, and
// one that gets nowhere ends. Decides only; its owner waits. One thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace chasqui::pull {

class Retries {
 public:
  static constexpr std::uint64_t kBroughtSomething = 1 << 20;  // bytes
  static constexpr Duration kFirstPause = std::chrono::milliseconds(500);
  static constexpr Duration kLongestPause = std::chrono::seconds(8);
  static constexpr Duration kLongestWish = std::chrono::seconds(60);

  explicit Retries(int most) : most_(most) {}

  // What the last try brought that none before it had.
  void brought(std::uint64_t bytes);
  // The pause before the next try, `wish` where the server asks for a longer one; nothing: that was the last.
  std::optional<Duration> next(Duration wish = {});

 private:
  const int most_;
  int tried_ = 0;
};

}  // namespace chasqui::pull
