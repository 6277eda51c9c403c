#include "pull/retries.h"

#include <algorithm>

namespace chasqui::pull {

void Retries::brought(std::uint64_t bytes) {
  if (bytes >= kBroughtSomething) tried_ = 0;
}

std::optional<Duration> Retries::next(Duration wish) {
  if (tried_ >= most_) return std::nullopt;
  Duration pause = kFirstPause;
  for (int i = 0; i < tried_ && pause < kLongestPause; ++i) pause *= 2;
  ++tried_;
  return std::max(std::min(pause, kLongestPause), std::min(wish, kLongestWish));
}

}  // namespace chasqui::pull
