#include "api/generation.h"

#include "base/log.h"

namespace chasqui {
namespace {

// What an event becomes on the wire besides its text; a whole chat chunk is about this large.
constexpr std::size_t kEventOverhead = 200;

}  // namespace

void StreamHub::deliver() {
  engine_.take_events(events_);
  for (Event& event : events_) {
    const auto found = open_.find(event.request);
    if (event.kind == Event::Kind::finished) {
      event.asked = found != open_.end() && found->second->cancel_asked_ && event.reason == FinishReason::cancelled;
      if (watcher_) watcher_(event);
    }
    if (found == open_.end()) continue;  // its handler has gone; the cancel is on its way
    found->second->receive(std::move(event));
  }
}

void StreamHub::cancel(RequestId request) {
  if (const auto found = open_.find(request); found != open_.end()) found->second->cancel_asked_ = true;
  engine_.cancel(request);
}

Result<std::unique_ptr<Generation>> Generation::start(StreamHub& hub, RequestPtr request, Permit permit) {
  const RequestId id = request->id;
  if (auto submitted = hub.engine_.submit(std::move(request)); !submitted) return submitted.error();
  // No event can be missed in between: deliver() runs on this thread.
  std::unique_ptr<Generation> generation(new Generation(hub, id, std::move(permit)));
  hub.open_.emplace(id, generation.get());
  return generation;
}

Generation::~Generation() {
  hub_.open_.erase(id_);
  if (!finished_) hub_.engine_.cancel(id_);
}

net::Awaitable<bool> Generation::wait_until(TimePoint deadline) {
  if (!events_.empty()) co_return true;
  const bool notified = co_await signal_.wait_until(deadline);
  co_return notified;
}

void Generation::take(std::vector<Event>& events) {
  events.clear();
  events.swap(events_);
  unread_ = 0;
}

void Generation::receive(Event event) {
  if (event.kind == Event::Kind::finished) {
    finished_ = true;
    permit_.release();
  } else if (slow_) {
    return;
  }
  unread_ += event.text.size() + kEventOverhead;
  if (unread_ > hub_.unread_max_ && !finished_) {
    slow_ = true;
    hub_.engine_.door_metrics().slow_clients.add();
    hub_.engine_.cancel(id_);
    log_info("a client does not read: its request is cancelled", {{"request", id_.value}});
    return;
  }
  events_.push_back(std::move(event));
  signal_.notify();
}

}  // namespace chasqui
