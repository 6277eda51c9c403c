#include "sched/wait_queue.h"

#include <algorithm>

namespace chasqui {

void WaitQueue::push(std::unique_ptr<Sequence> sequence) {
  const auto line = static_cast<std::size_t>(sequence->request().service_class);
  lines_[line].push_back(std::move(sequence));
}

const Sequence* WaitQueue::front() const {
  const Line* line = first_line();
  return line != nullptr ? line->front().get() : nullptr;
}

std::unique_ptr<Sequence> WaitQueue::pop() {
  return remove_first([](const Sequence&) { return true; });
}

std::unique_ptr<Sequence> WaitQueue::remove(RequestId id) {
  return remove_first([id](const Sequence& sequence) { return sequence.id() == id; });
}

std::unique_ptr<Sequence> WaitQueue::remove_expired(TimePoint now) {
  return remove_first([now](const Sequence& sequence) { return sequence.request().deadline <= now; });
}

std::size_t WaitQueue::size() const {
  std::size_t total = 0;
  for (const Line& line : lines_) total += line.size();
  return total;
}

template <class Predicate>
std::unique_ptr<Sequence> WaitQueue::remove_first(Predicate matches) {
  for (Line& line : lines_) {
    const auto found = std::find_if(line.begin(), line.end(), [&](const auto& s) { return matches(*s); });
    if (found == line.end()) continue;
    std::unique_ptr<Sequence> sequence = std::move(*found);
    line.erase(found);
    return sequence;
  }
  return nullptr;
}

const WaitQueue::Line* WaitQueue::first_line() const {
  const auto found = std::find_if(lines_.begin(), lines_.end(), [](const Line& line) { return !line.empty(); });
  return found != lines_.end() ? &*found : nullptr;
}

}  // namespace chasqui
