#include "base/shared_lock.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chasqui {
namespace {

TEST(SharedLock, LetsOneWriteOrManyRead) {
  SharedLock lock;
  int first = 0, second = 0;
  std::atomic<int> torn{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!over) {
        const SharedLock::Reading reading(lock);
        if (first != second) ++torn;
      }
    });
  }
  std::vector<std::thread> writers;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        const SharedLock::Writing writing(lock);
        ++first;
        ++second;
      }
    });
  }
  for (std::thread& thread : writers) thread.join();
  over = true;
  for (std::thread& thread : readers) thread.join();
  EXPECT_EQ(first, 400) << "two that wrote at once would lose some";
  EXPECT_EQ(torn, 0);
}

TEST(SharedLock, ReadersAreInsideTogether) {
  SharedLock lock;
  std::atomic<int> inside{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      const SharedLock::Reading reading(lock);
      ++inside;
      while (inside < 2) std::this_thread::yield();
    });
  }
  for (std::thread& thread : readers) thread.join();
  EXPECT_EQ(inside, 2);
}

}  // namespace
}  // namespace chasqui
