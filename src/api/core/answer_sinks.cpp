#include "api/core/answer_sinks.h"

#include <iterator>
#include <utility>

namespace chasqui {
namespace {

// Of one wake-up: more is handed over before the rest is read, so that it counts as unread when the client does not
// take it.
constexpr std::size_t kAtOnce = 64 * 1024;
// What one token and its likelihood become as JSON, about.
constexpr std::size_t kChanceBytes = 80;

}  // namespace

bool AnswerSink::text(Event& event, std::string& out) {
  try {
    return say(event, out);
  } catch (...) {
    failure_ = std::current_exception();
    return false;
  }
}

void AnswerSink::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

bool StreamSink::say(Event& event, std::string& out) {
  writer_.text(event, out);
  if (out.size() < kAtOnce) return true;
  const bool taken = exchange_.write_now(out);
  out.clear();
  return taken;
}

bool StreamSink::flush(std::string& out, TimePoint now) {
  said_at_ = now;
  return exchange_.write_now(out);
}

bool WholeSink::say(Event& event, std::string&) {
  take(event);
  return !too_large();  // the handler has to know
}

void WholeSink::take(Event& event) {
  if (event.kind == Event::Kind::text || event.kind == Event::Kind::finished) writer_.hear(event);
  Collected& out = answers_[static_cast<std::size_t>(event.choice)];
  bytes_ += event.text.size() + event.chances.size() * kChanceBytes;
  out.text += event.text;
  if (event.kind == Event::Kind::text) {
    out.tokens.push_back(event.token);
    if (!event.chances.empty()) out.chances.push_back(std::move(event.chances));
  } else if (event.kind == Event::Kind::prompt) {
    out.prompt_chances.insert(out.prompt_chances.end(), std::make_move_iterator(event.prompt_chances.begin()),
                              std::make_move_iterator(event.prompt_chances.end()));
  } else if (event.kind == Event::Kind::finished) {
    out.finished = std::move(event);
  }
}

net::Awaitable<Drained> drain_events(Generation& generation, const Answer& answer, TimePoint until, AnswerSink* sink,
                                     std::function<bool()> gone, std::vector<Event>& events) {
  events.clear();
  const bool woken = co_await generation.wait_until(until, sink);
  if (gone()) co_return Drained::ended;
  if (sink != nullptr) sink->check();
  if (!woken) co_return Drained::silence;
  generation.take(events);
  co_await settle_end(answer, events);
  co_return gone() ? Drained::ended : Drained::events;
}

}  // namespace chasqui
