// What clients are told before their first token: their place in the line, how far their prompt has been read, and how
// likely it was.
#include <algorithm>
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
  line_.clear();
  for (const auto& sequence : waiting_.all()) {
    line_.push_back(sequence.get());
    forecast_.waited(sequence->id(), now - sequence->request().arrival, sequence->length(), false, now);
  }
  std::sort(line_.begin(), line_.end(),
            [&](const Sequence* a, const Sequence* b) { return urgency.slot_before(*a, *b); });
  for (std::size_t i = 0; i < line_.size(); ++i) {
    Event event;
    event.request = line_[i]->id();
    event.kind = Event::Kind::queued;
    event.service_class = line_[i]->request().service_class;
    event.position = static_cast<std::int32_t>(i);
    event.wait = wait_behind(event.position) + forecast_.excess(event.service_class, now);
    events_.push_back(std::move(event));
  }
}

void Scheduler::tell_reading(const Sequence& sequence, TimePoint now) {
  Event& event = events_.emplace_back();
  event.request = sequence.id();
  event.kind = Event::Kind::reading;
  event.service_class = sequence.request().service_class;
  event.usage = sequence.usage(now);
  event.read = sequence.computed();
}

// A sequence that lost its slot is read again, and has told some of it.
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
