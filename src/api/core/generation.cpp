#include "api/core/generation.h"

#include <algorithm>

#include "base/log.h"

namespace chasqui {
namespace {

// What an event takes besides its text, which is more than it becomes on the wire.
constexpr std::size_t kEventOverhead = sizeof(Event);
constexpr std::size_t kChanceOverhead = 60;
// Clients that are told their place in one wake-up of the loop: about a millisecond of it.
constexpr std::size_t kPlacesAtOnce = 32;

}  // namespace

void StreamHub::deliver() {
  engine_.take_events(events_);
  next_.assign(events_.size(), Generation::kNone);
  for (std::uint32_t i = 0; i < events_.size(); ++i) {
    Event& event = events_[i];
    const bool finished = event.kind == Event::Kind::finished;
    if (given_up_.contains(event.request)) {
      if (finished) given_up_.erase(event.request);
      continue;
    }
    if (finished) {
      finish(std::move(event));
      continue;
    }
    if (event.kind == Event::Kind::queued) {
      note_place(std::move(event));
      continue;
    }
    if (text_watcher_ && event.kind == Event::Kind::text) text_watcher_(event);
    const auto found = open_.find(event.request);
    if (found == open_.end()) continue;  // its handler has gone; the cancel is on its way
    found->second->receive(event, i);
  }
  tell_places();
  if (speaking_.empty()) return;
  const TimePoint now = loop_.now();
  for (Generation* generation : speaking_) speak(*generation, now);
  speaking_.clear();
}

void StreamHub::note_place(Event&& event) {
  const auto found = open_.find(event.request);
  if (found == open_.end() || !found->second->wants_places_) return;
  Generation& generation = *found->second;
  if (!generation.place_) places_.push_back(event.request);
  generation.place_ = std::move(event);
}

void StreamHub::tell_places() {
  for (std::size_t told = 0; told < kPlacesAtOnce && !places_.empty(); ++told) {
    const auto found = open_.find(places_.front());
    places_.pop_front();
    if (found == open_.end() || !found->second->place_) continue;
    Event place = std::move(*found->second->place_);
    found->second->place_.reset();
    found->second->keep(std::move(place));
  }
}

// What the sink does not take is for the handler.
void StreamHub::speak(Generation& generation, TimePoint now) {
  if (generation.first_unsaid_ == Generation::kNone) return;  // the handler has to come for something else, too
  TextSink*& sink = generation.sink_;
  out_.clear();
  for (std::uint32_t i = generation.first_unsaid_; i != Generation::kNone; i = next_[i]) {
    if (sink == nullptr) {
      generation.keep(std::move(events_[i]));
    } else if (!sink->text(events_[i], out_)) {
      sink = nullptr;
    }
  }
  generation.first_unsaid_ = generation.last_unsaid_ = Generation::kNone;
  if (sink != nullptr && !sink->flush(out_, now)) sink = nullptr;
  if (sink == nullptr) generation.signal_.notify();
}

void StreamHub::finish(Event event) {
  const auto found = open_.find(event.request);
  event.asked = found != open_.end() && found->second->cancel_asked_ && event.reason == FinishReason::cancelled;
  if (watcher_) watcher_(event);
  if (found == open_.end()) return;
  Generation& generation = *found->second;
  open_.erase(found);
  generation.place_.reset();
  generation.keep_unsaid();
  generation.keep(std::move(event));
}

std::size_t StreamHub::give_up(const std::optional<std::vector<RequestId>>& requests, const Error& error) {
  std::vector<RequestPtr> lost;
  for (const auto& [id, generation] : open_) {
    if (!requests || std::ranges::find(*requests, id) != requests->end()) lost.push_back(generation->request_of(id));
  }
  for (const RequestPtr& request : lost) {
    Event event;
    event.request = request->id;
    event.kind = Event::Kind::finished;
    event.service_class = request->service_class;
    event.reason = FinishReason::error;
    event.usage.prompt = static_cast<TokenCount>(request->prompt.size());
    event.error = error;
    given_up_.insert(request->id);
    engine_.cancel(request->id);  // for the time when it moves again
    finish(std::move(event));
  }
  return lost.size();
}

void StreamHub::cancel(RequestId request) {
  if (const auto found = open_.find(request); found != open_.end()) found->second->cancel_asked_ = true;
  engine_.cancel(request);
}

RequestPtr StreamHub::request_of(RequestId id) const {
  const auto found = open_.find(id);
  return found != open_.end() ? found->second->request_of(id) : nullptr;
}

std::vector<RequestPtr> StreamHub::requests() const {
  std::vector<RequestPtr> all;
  all.reserve(open_.size());
  for (const auto& [id, generation] : open_) all.push_back(generation->request_of(id));
  return all;
}

Result<std::unique_ptr<Generation>> Generation::start(StreamHub& hub, RequestPtr request, Permit permit) {
  std::vector<RequestPtr> requests;
  requests.push_back(std::move(request));
  return start(hub, std::move(requests), std::move(permit));
}

Result<std::unique_ptr<Generation>> Generation::start(StreamHub& hub, std::vector<RequestPtr> requests, Permit permit,
                                                      Engine::Entry entry) {
  std::unique_ptr<Generation> generation(new Generation(hub, std::move(permit)));
  for (RequestPtr& request : requests) {
    const RequestId id = request->id;
    if (auto submitted = hub.engine_.submit(request, entry); !submitted) return submitted.error();
    // No event can be missed in between: deliver() runs on this thread.
    hub.open_.emplace(id, generation.get());
    generation->ids_.push_back(id);
    generation->retold_ += request->begun.size();
    generation->requests_.push_back(std::move(request));
    ++generation->running_;
  }
  return generation;
}

Generation::~Generation() {
  for (const RequestId id : ids_) hub_.open_.erase(id);
  if (running_ > 0) cancel_all();
}

std::ptrdiff_t Generation::place_of(RequestId id) const { return std::ranges::find(ids_, id) - ids_.begin(); }

void Generation::cancel_all() {
  for (const RequestId id : ids_) hub_.engine_.cancel(id);  // harmless for those that have ended
}

net::Awaitable<bool> Generation::wait_until(TimePoint deadline, TextSink* sink) {
  if (!events_.empty()) co_return true;
  sink_ = sink;
  const bool notified = co_await signal_.wait_until(deadline);
  sink_ = nullptr;
  co_return notified;
}

void Generation::take(std::vector<Event>& events) {
  events.clear();
  events.swap(events_);
  unread_ = 0;
}

void Generation::receive(Event& event, std::uint32_t place) {
  place_.reset();  // it waits no longer
  if (event.kind != Event::Kind::text || sink_ == nullptr || !events_.empty()) {
    keep_unsaid();
    return keep(std::move(event));
  }
  if (ids_.size() > 1) event.choice = static_cast<std::int32_t>(place_of(event.request));
  if (first_unsaid_ == kNone) {
    first_unsaid_ = place;
    hub_.speaking_.push_back(this);
  } else {
    hub_.next_[last_unsaid_] = place;
  }
  last_unsaid_ = place;
}

// Before something that the handler has to see, and in one write with it.
void Generation::keep_unsaid() {
  for (std::uint32_t i = first_unsaid_; i != kNone; i = hub_.next_[i]) keep(std::move(hub_.events_[i]));
  first_unsaid_ = last_unsaid_ = kNone;
}

void Generation::keep(Event&& event) {
  if (event.kind == Event::Kind::finished) {
    --running_;
    if (running_ == 0 && !keeps_permit_) permit_.release();
  } else if (slow_) {
    return;
  }
  if (ids_.size() > 1) event.choice = static_cast<std::int32_t>(place_of(event.request));
  if (event.kind == Event::Kind::text && retold_ > 0) {
    retold_ -= std::min(retold_, static_cast<std::size_t>(event.tokens));
  } else {
    unread_ += event.text.size() + event.chances.size() * kChanceOverhead + kEventOverhead;
    for (const auto& chances : event.prompt_chances) unread_ += sizeof chances + chances.size() * sizeof(TokenChance);
  }
  if (unread_ > hub_.unread_max_ && running_ > 0) {
    slow_ = true;
    hub_.engine_.door_metrics().slow_clients.add();
    cancel_all();
    log_info("a client does not read: its request is cancelled", {{"request", event.request.value}});
    return;
  }
  events_.push_back(std::move(event));
  signal_.notify();
}

}  // namespace chasqui
