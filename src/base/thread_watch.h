// One thread as another sees it, to tell a thread that hangs from one that the machine gives no processor. Made by the
// thread itself, which outlives the use of it; any thread reads.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace chasqui {

class ThreadWatch {
 public:
  ThreadWatch();  // of the calling thread, which has no other
  ~ThreadWatch();
  ThreadWatch(const ThreadWatch&) = delete;
  ThreadWatch& operator=(const ThreadWatch&) = delete;

  // The calling thread has slept for another process, no longer than it may, and goes on. Nothing if it is not watched.
  static void has_waited(TimePoint now);
  // When it said so last; long ago if it never did.
  TimePoint waited() const { return TimePoint(Duration(waited_.load(std::memory_order_relaxed))); }

  // What it has computed since it began, as thread_time() says it of the calling thread; zero where the system does not
  // tell it of another one.
  Duration computed() const;
  // It waits for something else than a processor. True as well where the system does not say.
  bool sleeps() const;
  int number() const { return number_; }

 private:
  int number_ = 0;  // of the thread, as the system counts it
  std::atomic<Duration::rep> waited_{0};
};

}  // namespace chasqui
