// Text on its way past the coroutine that waits for the answer.
#include "api/core/generation.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/core/fake_node.h"
#include "net/wakeup_listener.h"

namespace chasqui {
namespace {

// Takes so many texts, then so many wake-ups more.
class ShortSink final : public TextSink {
 public:
  ShortSink(std::string& said, int texts) : said_(said), texts_(texts) {}

  bool text(Event& event, std::string& out) override {
    out += event.text;
    if (--texts_ > 0) return true;
    said_ += out;  // no flush
    return false;
  }
  bool flush(std::string& out, TimePoint) override {
    said_ += out;
    return true;
  }

 private:
  std::string& said_;
  int texts_;
};

class GenerationTest : public testing::Test {
 protected:
  std::unique_ptr<Generation> generation(TokenCount tokens) {
    RequestDraft draft;
    draft.prompt = {1, 2, 3};
    draft.max_tokens = tokens;
    draft.sampling.temperature = 0;
    auto request = make_request(fake_.engine.next_id(), std::move(draft), fake_.limits, fake_.clock.now());
    return std::move(*Generation::start(streams_, std::move(*request), Permit()));
  }

  // What the sink does not take is added to the same text, so that its order shows.
  net::Awaitable<void> read(Generation& generation, TextSink* sink, std::string& said) {
    std::vector<Event> events;
    while (events.empty() || events.back().kind != Event::Kind::finished) {
      co_await generation.wait_until(kNever, sink);
      ++wakes_;
      generation.take(events);
      for (const Event& event : events) said += event.text;
    }
    fake_.loop.stop();
  }

  void answer(TokenCount tokens, TextSink* sink, std::string& said) {
    const auto running = generation(tokens);
    wakes_ = 0;
    fake_.loop.spawn(read(*running, sink, said), "read");
    fake_.loop.run();
  }

  FakeNode fake_;
  StreamHub streams_{fake_.engine, fake_.loop, 1 << 20};  // no reader here is slow
  net::WakeupListener listener_{fake_.loop, fake_.wakeup, [this] { streams_.deliver(); }};
  int wakes_ = 0;
};

TEST_F(GenerationTest, TextGoesToTheSinkAndTheHandlerSleepsUntilTheEnd) {
  std::string without, with;
  answer(60, nullptr, without);
  ASSERT_FALSE(without.empty());
  ShortSink sink(with, 1000);
  answer(60, &sink, with);
  EXPECT_EQ(with, without);
  EXPECT_LE(wakes_, 3) << "for the end, and where text came before anybody waited";
}

TEST_F(GenerationTest, WhatTheSinkDoesNotTakeWakesTheHandlerInItsOrder) {
  std::string without;
  answer(60, nullptr, without);
  ASSERT_FALSE(without.empty());
  for (int taken = 1; taken < 70; taken += 3) {
    std::string with;
    ShortSink sink(with, taken);
    answer(60, &sink, with);
    EXPECT_EQ(with, without) << taken;
  }
}

}  // namespace
}  // namespace chasqui
