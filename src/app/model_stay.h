// For how long a model stays loaded after its last use, where a request has said so (`keep_alive`). Owned by
// ModelKeeper; loop thread.
#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.h"

namespace chasqui {

class ModelStay {
 public:
  // From now on: what was said last holds. Negative: until others need its room, as without a word.
  void keep(Duration time, TimePoint now) {
    time_ = time < Duration::zero() ? std::nullopt : std::optional(time);
    used_at_ = now;
  }
  bool ends() const { return time_.has_value(); }
  // Asked again and again while it is loaded: whether it has done nothing for so long.
  bool over(bool idle, TimePoint now) {
    if (!idle) used_at_ = now;
    return time_ && idle && now - used_at_ >= *time_;
  }
  // Nothing: it does not end by itself.
  std::optional<Duration> left(TimePoint now) const {
    if (!time_) return std::nullopt;
    return std::max(*time_ - (now - used_at_), Duration::zero());
  }

 private:
  std::optional<Duration> time_;
  TimePoint used_at_{};
};

}  // namespace chasqui
