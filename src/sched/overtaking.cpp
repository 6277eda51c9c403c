#include "sched/overtaking.h"

#include <algorithm>

namespace chasqui {

void Overtaking::starts(const Sequence& starter, const WaitQueue& waiting) {
  const TimePoint since = starter.waiting_since();
  any_ = false;
  if (waiting.empty()) return lanes_.clear();
  const Key own = key_of(starter.request());
  for (auto& [key, lane] : lanes_) lane.oldest = kNever;
  for (const auto& sequence : waiting.all()) {
    const Key key = key_of(sequence->request());
    Lane& lane = lanes_[key];
    lane.oldest = std::min(lane.oldest, sequence->waiting_since());
    if (key == own && sequence->waiting_since() < since) sequence->count_passed();
    any_ = any_ || sequence->passed() >= kPassedMost;
  }
  std::erase_if(lanes_, [](const auto& entry) { return entry.second.oldest == kNever; });
  for (auto& [key, lane] : lanes_) {
    lane.passed = key == own ? 0 : lane.passed + (lane.oldest < since ? 1 : 0);
    any_ = any_ || lane.passed >= kPassedMost;
  }
}

bool Overtaking::is_starved(const Sequence& sequence) const {
  if (!any_) return false;
  if (sequence.passed() >= kPassedMost) return true;
  const auto lane = lanes_.find(key_of(sequence.request()));
  return lane != lanes_.end() && lane->second.passed >= kPassedMost && lane->second.oldest == sequence.waiting_since();
}

}  // namespace chasqui
