#include "net/wakeup_listener.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/mailbox.h"
#include "net/event_signal.h"

namespace chasqui::net {
namespace {

class WakeupListenerTest : public testing::TestWithParam<Wakeup::Kind> {};

// Items cross from a thread to a coroutine: the outbox, the wake-up and the signal of a stream, as in the real thing.
struct Relay {
  Relay(EventLoop& event_loop, Wakeup& source)
      : loop(event_loop), arrived(event_loop), listener(event_loop, source, [this] { take(); }) {}

  void take() {
    ++calls;
    outbox.drain(batch);
    if (batch.empty()) return;
    received.insert(received.end(), batch.begin(), batch.end());
    arrived.notify();
  }
  Awaitable<void> collect(std::size_t count) {
    while (received.size() < count) co_await arrived.wait();
    loop.stop();
  }

  EventLoop& loop;
  Mailbox<int> outbox{100'000};
  EventSignal arrived;
  std::vector<int> batch, received;
  int calls = 0;
  WakeupListener listener;
};

TEST_P(WakeupListenerTest, CarriesEverythingToACoroutine) {
  constexpr int kItems = 20'000;
  NetMetrics metrics;
  EventLoop loop(metrics);
  Wakeup wakeup(GetParam());
  ASSERT_EQ(wakeup.kind(), GetParam());
  Relay relay(loop, wakeup);
  std::thread producer([&] {
    std::vector<int> step;
    for (int i = 0; i < kItems; ++i) {
      step.push_back(i);
      if (i % 10 != 9) continue;
      relay.outbox.push_all(step);
      wakeup.signal();
    }
  });
  loop.spawn(relay.collect(kItems), "collect");
  loop.run();
  producer.join();
  ASSERT_EQ(relay.received.size(), static_cast<std::size_t>(kItems));
  for (int i = 0; i < kItems; ++i) ASSERT_EQ(relay.received[static_cast<std::size_t>(i)], i);
}

TEST_P(WakeupListenerTest, ManySignalsAreOneCall) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  Wakeup wakeup(GetParam());
  int calls = 0;
  const WakeupListener listener(loop, wakeup, [&] {
    ++calls;
    loop.stop();
  });
  for (int i = 0; i < 100; ++i) wakeup.signal();
  loop.run();
  EXPECT_EQ(calls, 1);
}

TEST_P(WakeupListenerTest, MayBeDestroyedByItsOwnCall) {
  NetMetrics metrics;
  EventLoop loop(metrics);
  Wakeup wakeup(GetParam());
  std::unique_ptr<WakeupListener> listener;
  listener = std::make_unique<WakeupListener>(loop, wakeup, [&] {
    listener.reset();
    loop.stop();
  });
  wakeup.signal();
  loop.run();
  EXPECT_EQ(listener, nullptr);
  wakeup.signal();  // the descriptor is still the Wakeup's
}

INSTANTIATE_TEST_SUITE_P(Kinds, WakeupListenerTest,
                         testing::Values(Wakeup::Kind::eventfd, Wakeup::Kind::pipe, Wakeup::Kind::polling));

}  // namespace
}  // namespace chasqui::net
