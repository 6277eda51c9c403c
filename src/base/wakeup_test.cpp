#include "base/wakeup.h"

#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

namespace chasqui {
namespace {

bool readable(const Wakeup& wakeup, int timeout_ms = 0) {
  pollfd waiting{wakeup.fd(), POLLIN, 0};
  return ::poll(&waiting, 1, timeout_ms) == 1;
}

class WakeupKinds : public testing::TestWithParam<Wakeup::Kind> {
 protected:
  Wakeup wakeup_{GetParam()};
};

TEST_P(WakeupKinds, IsTheKindThatWasAskedFor) {
  EXPECT_EQ(wakeup_.kind(), GetParam());
  EXPECT_GE(wakeup_.fd(), 0);
}

TEST_P(WakeupKinds, IsNotReadableBeforeTheFirstSignal) {
  EXPECT_FALSE(readable(wakeup_));
  wakeup_.acknowledge();  // and acknowledging nothing does not block
  EXPECT_FALSE(readable(wakeup_));
}

TEST_P(WakeupKinds, ManySignalsAreOneWakeUp) {
  for (int i = 0; i < 1000; ++i) wakeup_.signal();
  EXPECT_TRUE(readable(wakeup_));
  EXPECT_TRUE(readable(wakeup_)) << "stays readable until it is acknowledged";
  wakeup_.acknowledge();
  EXPECT_FALSE(readable(wakeup_));
  wakeup_.signal();
  EXPECT_TRUE(readable(wakeup_));
}

// A pipe is full after some thousand signals: the test hangs if signal() waits for room.
TEST_P(WakeupKinds, SignalNeverBlocksWithoutAcknowledgement) {
  for (int i = 0; i < 1'000'000; ++i) wakeup_.signal();
  EXPECT_TRUE(readable(wakeup_));
  wakeup_.acknowledge();
  EXPECT_FALSE(readable(wakeup_));
  wakeup_.signal();
  EXPECT_TRUE(readable(wakeup_));
}

TEST_P(WakeupKinds, WakesAPollFromAnotherThread) {
  for (int round = 0; round < 100; ++round) {
    std::thread other([this] { wakeup_.signal(); });
    EXPECT_TRUE(readable(wakeup_, 30'000));
    wakeup_.acknowledge();
    other.join();
    ASSERT_FALSE(readable(wakeup_));
  }
}

TEST_P(WakeupKinds, NoSignalIsLostBetweenAcknowledgeAndTheNextPoll) {
  constexpr int kSignallers = 3, kSignals = 2000;
  std::vector<std::thread> signallers;
  for (int t = 0; t < kSignallers; ++t) {
    signallers.emplace_back([this] {
      for (int i = 0; i < kSignals; ++i) wakeup_.signal();
    });
  }
  for (int i = 0; i < 500 && readable(wakeup_, 30'000); ++i) {
    wakeup_.acknowledge();
    wakeup_.signal();  // ours must be seen too, whatever the others do
    ASSERT_TRUE(readable(wakeup_));
  }
  for (std::thread& signaller : signallers) signaller.join();
  EXPECT_TRUE(readable(wakeup_));
}

std::string kind_name(const testing::TestParamInfo<Wakeup::Kind>& info) {
  return info.param == Wakeup::Kind::eventfd ? "eventfd" : "pipe";
}

#ifdef __linux__
INSTANTIATE_TEST_SUITE_P(Wakeup, WakeupKinds, testing::Values(Wakeup::Kind::eventfd, Wakeup::Kind::pipe), kind_name);
#else
INSTANTIATE_TEST_SUITE_P(Wakeup, WakeupKinds, testing::Values(Wakeup::Kind::pipe), kind_name);
#endif

#ifdef __linux__
TEST(WakeupEventfd, SignalDoesNotBlockWhenTheCounterIsFull) {
  Wakeup wakeup;
  const std::uint64_t almost_all = std::numeric_limits<std::uint64_t>::max() - 1;
  ASSERT_EQ(::write(wakeup.fd(), &almost_all, sizeof almost_all), static_cast<ssize_t>(sizeof almost_all));
  wakeup.signal();
  EXPECT_TRUE(readable(wakeup));
  wakeup.acknowledge();
  EXPECT_FALSE(readable(wakeup));
}
#endif

TEST(WakeupPolling, HasNothingToWaitOnAndIgnoresSignals) {
  Wakeup wakeup(Wakeup::Kind::polling);
  EXPECT_EQ(wakeup.kind(), Wakeup::Kind::polling);
  EXPECT_EQ(wakeup.fd(), -1);
  wakeup.signal();
  wakeup.acknowledge();
}

TEST(Wakeup, ReturnsItsDescriptors) {
  const int before = Wakeup(Wakeup::Kind::pipe).fd();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Wakeup(Wakeup::Kind::pipe).fd(), before);
}

}  // namespace
}  // namespace chasqui
