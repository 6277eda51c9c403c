#include "sched/adapter_turns.h"

#include <algorithm>
#include <utility>

#include "sched/moving_average.h"
#include "sched/thresholds.h"

namespace chasqui {

const AdapterSet* AdapterTurns::next(const RunningSequences& running, TimePoint now) {
  survey(running, now);
  if (groups_.empty()) return current_.get();
  const auto is_current = [this](const Group& g) { return same_adapters(g.adapters.get(), current_.get()); };
  const auto current = any_ ? std::find_if(groups_.begin(), groups_.end(), is_current) : groups_.end();
  std::size_t chosen = groups_.size();
  if (current == groups_.end()) {
    chosen = longest_waiting();
  } else {
    chosen = pressing(*current, now);
    if (chosen == groups_.size() && turn_over(now)) {
      current->served = now;
      chosen = longest_waiting();
    }
    if (chosen == groups_.size()) chosen = static_cast<std::size_t>(current - groups_.begin());
  }
  Group& next = groups_[chosen];
  const bool stays = current != groups_.end() && &*current == &next;
  switched_ = any_ && !same_adapters(current_.get(), next.adapters.get());
  switches_ += switched_ ? 1 : 0;
  if (!stays) {
    if (current != groups_.end()) current->served = now;
    turn_began_ = now;
  } else if (turn_over(now)) {
    turn_began_ = now;  // it is alone
  }
  if (switched_ || !any_) current_ = next.adapters;
  any_ = true;
  // The caller's sequences may go before current_ does, and the other way round.
  return current_.get();
}

Duration AdapterTurns::computed(Duration took, Duration predicted) {
  if (!switched_ || predicted <= Duration::zero()) return took;
  // Less than nothing, at times: what disturbs steps makes them longer and shorter than predicted. Of two changes the
  // shorter counts: one step that took minutes longer would make turns so long that the other sets starve.
  const Duration measured = took - predicted;
  Duration more = std::min(measured, std::exchange(before_, measured));
  if (switch_time_ > Duration::zero()) {
    more = std::min(more, std::chrono::duration_cast<Duration>(kSurprise * switch_time_));
  }
  switch_time_ += std::chrono::duration_cast<Duration>(kQuickWeight * (more - switch_time_));
  switch_time_ = std::max(switch_time_, Duration::zero());
  return std::max(took - switch_time_, took / 2);
}

void AdapterTurns::survey(const RunningSequences& running, TimePoint now) {
  for (Group& group : groups_) {
    group.wanted = false;
    group.best = ServiceClass::background;
    group.due = kNever;
  }
  period_ = Duration::max();
  for (const auto& sequence : running) {
    if (sequence->awaits_unit() || sequence->awaits_prefix()) continue;  // it has no rows for a turn
    note(group_of(sequence->request().adapters, now), *sequence);
  }
  std::erase_if(groups_, [](const Group& group) { return !group.wanted; });
}

void AdapterTurns::note(Group& group, const Sequence& sequence) {
  const ServiceClass service_class = sequence.request().service_class;
  const Duration target = targets_.of[static_cast<std::size_t>(service_class)].next_token;
  period_ = std::min(period_, target);
  if (service_class < group.best) group.due = kNever;
  group.wanted = true;
  if (service_class > group.best) return;
  group.best = service_class;
  if (sequence.decoding()) group.due = std::min(group.due, sequence.went_on_at() + target);
}

AdapterTurns::Group& AdapterTurns::group_of(const AdapterSetPtr& adapters, TimePoint now) {
  for (Group& group : groups_) {
    if (same_adapters(group.adapters.get(), adapters.get())) return group;
  }
  return groups_.emplace_back(Group{.adapters = adapters, .served = now});
}

Duration AdapterTurns::turn_length() const {
  // To begin a turn is part of it.
  return std::max(period_ / static_cast<int>(groups_.size()), kQuarter * switch_time_);
}

// Of those with a late stream, the most urgent one, when it is more urgent than whose turn it is.
std::size_t AdapterTurns::pressing(const Group& current, TimePoint now) const {
  std::size_t found = groups_.size();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    if (group.best >= current.best || group.due > now) continue;
    if (found == groups_.size() || group.best < groups_[found].best ||
        (group.best == groups_[found].best && group.due < groups_[found].due)) {
      found = i;
    }
  }
  return found;
}

// Of several that came at the same time, the first.
std::size_t AdapterTurns::longest_waiting() const {
  const auto first = std::min_element(groups_.begin(), groups_.end(),
                                      [](const Group& a, const Group& b) { return a.served < b.served; });
  return static_cast<std::size_t>(first - groups_.begin());
}

}  // namespace chasqui
