#include "sched/wait_queue.h"

#include <algorithm>

namespace chasqui {

void WaitQueue::push(std::unique_ptr<Sequence> sequence) {
  ++counts_[static_cast<std::size_t>(sequence->request().service_class)];
  tokens_ += sequence->left();
  next_deadline_ = std::min(next_deadline_, sequence->expires());
  places_[sequence->id().value] = line_.size();
  line_.push_back(std::move(sequence));
}

std::unique_ptr<Sequence> WaitQueue::remove(RequestId id) {
  const auto found = places_.find(id.value);
  return found != places_.end() ? remove_at(found->second) : nullptr;
}

std::unique_ptr<Sequence> WaitQueue::remove_expired(TimePoint now) {
  if (now < next_deadline_) return nullptr;
  next_deadline_ = kNever;
  for (std::size_t i = 0; i < line_.size(); ++i) {
    const TimePoint deadline = line_[i]->expires();
    next_deadline_ = std::min(next_deadline_, deadline);
    if (deadline <= now) return remove_at(i);  // the bound stays at or below the rest: it is at most `now`
  }
  return nullptr;
}

std::unique_ptr<Sequence> WaitQueue::remove_at(std::size_t place) {
  line_[place].swap(line_.back());
  places_[line_[place]->id().value] = place;
  std::unique_ptr<Sequence> sequence = std::move(line_.back());
  line_.pop_back();
  places_.erase(sequence->id().value);
  --counts_[static_cast<std::size_t>(sequence->request().service_class)];
  tokens_ -= sequence->left();
  return sequence;
}

}  // namespace chasqui
