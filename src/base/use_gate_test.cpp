#include "base/use_gate.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(UseGate, LetsUsesThroughUntilItIsShut) {
  UseGate gate;
  {
    const UseGate::Pass one(gate);
    const UseGate::Pass two(gate);
    EXPECT_TRUE(one && two);
  }
  gate.shut();
  EXPECT_FALSE(UseGate::Pass(gate));
}

TEST(UseGate, WaitsForTheUsesThatAreInside) {
  for (int round = 0; round < 200; ++round) {
    UseGate gate;
    int plain = 0;  // two threads in it at once are a race, which a sanitizer sees
    std::atomic<bool> begun{false};
    std::thread user([&] {
      for (;;) {
        const UseGate::Pass pass(gate);
        if (!pass) return;
        ++plain;
        begun = true;
      }
    });
    while (!begun) std::this_thread::yield();
    gate.shut();
    const int then = plain;
    user.join();
    EXPECT_EQ(plain, then);
  }
}

}  // namespace
}  // namespace chasqui
