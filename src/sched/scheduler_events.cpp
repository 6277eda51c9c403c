// What clients are told before their first token: their place in the line, how far their prompt has been prefilled, and
// how likely it was.
#include <iterator>

#include "sched/scheduler.h"

namespace chasqui {
namespace {

// How often those who wait are told where they stand.
constexpr Duration kAnnounceEvery = seconds(1);

}  // namespace

void Scheduler::announce(const Urgency& urgency, TimePoint now) {
  if (waiting_.empty() || now - announced_ < kAnnounceEvery) return;
  announced_ = now;
  project(urgency);
  std::int32_t position = 0;
  for (const Projection::Place& place : projection_.line(urgency)) {
    Event& event = events_.emplace_back();
    event.request = place.id;
    event.kind = Event::Kind::queued;
    event.service_class = place.service_class;
    event.position = position++;
    event.wait = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(place.seconds));
  }
}

void Scheduler::tell_progress(const Sequence& sequence, TimePoint now) {
  Event& event = events_.emplace_back();
  event.request = sequence.id();
  event.kind = Event::Kind::progress;
  event.service_class = sequence.request().service_class;
  event.usage = sequence.usage(now);
  event.prefilled = sequence.computed();
}

// A sequence that lost its slot is prefilled again, and has told some of it.
void Scheduler::tell_prompt(Sequence& sequence, const PromptChances& prompt) {
  const TokenCount end = prompt.from + static_cast<TokenCount>(prompt.chances.size());
  if (end <= sequence.told_prompt()) return;
  Event& event = events_.emplace_back();
  event.request = sequence.id();
  event.kind = Event::Kind::prompt;
  event.service_class = sequence.request().service_class;
  event.prompt_chances.assign(prompt.chances.begin() + (sequence.told_prompt() - prompt.from), prompt.chances.end());
  sequence.tell_prompt(end);
}

void Scheduler::take_events(std::vector<Event>& events) {
  if (events.empty()) return events.swap(events_);
  events.insert(events.end(), std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
  events_.clear();
}

}  // namespace chasqui
