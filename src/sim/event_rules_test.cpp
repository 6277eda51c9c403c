#include "sim/event_rules.h"

#include <gtest/gtest.h>

#include "core/fake_requests.h"
#include "sim/checked_model.h"

namespace chasqui {
namespace {

SimRequest told_of(TokenCount tokens) {
  SimRequest life;
  life.serial = 1;
  life.plan.prompt = 3;
  life.plan.output = tokens;
  life.request = test_request(1, 3, tokens);
  life.generated = tokens;
  life.said_text = extend_text(0, "one two ");
  return life;
}

Event text(const std::string& words, TokenCount tokens) {
  Event event;
  event.text = words;
  event.tokens = tokens;
  return event;
}

Event finished(const SimRequest& life, FinishReason reason = FinishReason::length) {
  Event event;
  event.kind = Event::Kind::finished;
  event.reason = reason;
  event.usage.prompt = 3;
  event.usage.completion = life.generated;
  return event;
}

// The first fault of these events, when nothing was told before.
std::string fault(SimRequest& life, const std::vector<Event>& events) {
  Faults faults;
  life.said = 0;
  life.told_text = 0;
  for (const Event& event : events) check_event(event, life, 1, TimePoint{} + seconds(1), faults);
  if (!faults.any()) return "";
  return faults.lines().front().substr(faults.lines().front().find("us: ") + 4);
}

TEST(EventRules, AcceptAWholeAnswer) {
  SimRequest life = told_of(2);
  EXPECT_EQ(fault(life, {text("one ", 1), text("two ", 1), finished(life)}), "");
  EXPECT_EQ(fault(life, {text("one two ", 2), finished(life)}), "");
}

TEST(EventRules, FindALostToken) {
  SimRequest life = told_of(2);
  EXPECT_EQ(fault(life, {text("one two ", 1), finished(life)}), "tokens: sampled and never told (request 1)");
  EXPECT_EQ(fault(life, {text("one ", 2), finished(life)}), "tokens: the text is not what the model said (request 1)");
  EXPECT_EQ(fault(life, {text("one two ", 3)}), "tokens: an event tells of more tokens than were sampled (request 1)");
}

TEST(EventRules, FindAnEndThatDidNotHappen) {
  SimRequest life = told_of(2);
  const Event all = text("one two ", 2);
  const std::string wrong = "one-terminal: it did not end for the reason that it names (request 1)";
  for (const FinishReason reason :
       {FinishReason::stop, FinishReason::cancelled, FinishReason::deadline, FinishReason::error}) {
    EXPECT_EQ(fault(life, {all, finished(life, reason)}), wrong) << name(reason);
  }
  SimRequest unfinished = told_of(2);
  unfinished.request = test_request(1, 3, 5);
  EXPECT_EQ(fault(unfinished, {all, finished(unfinished)}), wrong);
}

TEST(EventRules, FindWrongUsage) {
  SimRequest life = told_of(2);
  Event end = finished(life);
  end.usage.completion = 1;
  EXPECT_EQ(fault(life, {text("one two ", 2), end}), "usage: completion tokens (request 1)");
  end = finished(life);
  end.usage.decode = seconds(2);
  EXPECT_EQ(fault(life, {text("one two ", 2), end}),
            "usage: times that do not fit into the life of the request (request 1)");
}

TEST(EventRules, FindAWaitOfARequestThatIsServed) {
  SimRequest life = told_of(2);
  Event queued;
  queued.kind = Event::Kind::queued;
  EXPECT_EQ(fault(life, {queued}), "");
  life.started = true;
  life.last_row_step = 1;
  EXPECT_EQ(fault(life, {queued}), "queue: told to wait in a step that computed rows of it (request 1)");
}

}  // namespace
}  // namespace chasqui
