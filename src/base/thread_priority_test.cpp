#include "base/thread_priority.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace chasqui {
namespace {

TEST(ThreadPriority, IsLowerForTheThreadThatYieldsAlone) {
  const int before = ::getpriority(PRIO_PROCESS, 0);
  int within = before;
  std::thread([&within] {
    yield_to_compute_threads();
    within = ::getpriority(PRIO_PROCESS, 0);
  }).join();
  EXPECT_EQ(within, std::min(before + 5, 19));
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
}

}  // namespace
}  // namespace chasqui
