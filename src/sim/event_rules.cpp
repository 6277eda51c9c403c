#include "sim/event_rules.h"

#include "sim/checked_model.h"

namespace chasqui {
namespace {

bool right_reason(const Event& event, const SimRequest& life, TimePoint now) {
  const bool whole = life.plan.max_tokens >= 0 && life.generated > 0 && life.generated >= life.plan.output;
  switch (event.reason) {
    case FinishReason::stop: return whole;
    case FinishReason::length: return !whole && life.generated == life.request->max_tokens;
    case FinishReason::cancelled: return life.leaves;
    case FinishReason::deadline: return life.request->deadline <= now;
    case FinishReason::error: return life.failed && event.error.code == ErrorCode::model_failure;
  }
  return false;
}

}  // namespace

void check_event(const Event& event, SimRequest& life, std::uint64_t step, TimePoint now, Faults& faults) {
  const auto expect = [&](bool kept, std::string_view promise) { faults.expect(kept, promise, life.serial); };
  life.said += event.tokens;
  life.told_text = extend_text(life.told_text, event.text);
  expect(life.said <= life.generated, "tokens: an event tells of more tokens than were sampled");
  switch (event.kind) {
    case Event::Kind::queued:
      expect(event.position >= 0 && event.wait >= Duration::zero(), "queue: a position or a wait below zero");
      expect(!life.started || life.last_row_step < step, "queue: told to wait in a step that computed rows of it");
      expect(event.tokens == 0 && event.text.empty(), "queue: a queued event carries text");
      return;
    case Event::Kind::progress:
      expect(life.said == 0, "progress: told of a prompt behind its first token");
      expect(event.tokens == 0 && event.text.empty(), "progress: a progress event carries text");
      expect(event.prefilled >= 0 && event.prefilled <= event.usage.prompt, "progress: more than the prompt");
      return;
    case Event::Kind::prompt:
      expect(life.said == 0 && event.tokens == 0 && event.text.empty(), "prompt: told behind the first token");
      return;
    case Event::Kind::text: expect(event.tokens > 0, "tokens: a text event for no token"); return;
    case Event::Kind::finished: break;
  }
  expect(right_reason(event, life, now), "one-terminal: it did not end for the reason that it names");
  expect(life.said == life.generated, "tokens: sampled and never told");
  expect(life.told_text == life.said_text, "tokens: the text is not what the model said");
  const Usage& usage = event.usage;
  expect(usage.prompt == static_cast<TokenCount>(life.request->prompt.size()), "usage: prompt tokens");
  expect(usage.completion == life.generated, "usage: completion tokens");
  expect(usage.cached >= 0 && usage.cached <= usage.prompt, "usage: cached tokens");
  const bool times = usage.queue >= Duration::zero() && usage.prefill >= Duration::zero() &&
                     usage.decode >= Duration::zero() &&
                     usage.queue + usage.prefill + usage.decode <= now - life.request->arrival;
  expect(times, "usage: times that do not fit into the life of the request");
}

}  // namespace chasqui
