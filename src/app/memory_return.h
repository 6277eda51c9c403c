// Gives back to the system what large bodies have left in the allocator, within five seconds of their end: after one
// was read a thread of the offload pool tells the allocator so, and once more two seconds later, when the body itself
// is freed. Never more often, however many such bodies come. A crowd of small requests leaves as much behind: after
// thousands of them, when few are read and few end, since they may wait for long between the two. Owned by Server; loop
// thread only.
#pragma once

#include <cstdint>

#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui {

class MemoryReturn {
 public:
  // Both outlive it; it ends after the loop has stopped.
  MemoryReturn(net::EventLoop& loop, net::OffloadPool& offload)
      : loop_(loop), offload_(offload), timer_(loop.executor()) {
    look();
  }
  void request_ended() { ++ended_; }

 private:
  void look();
  bool crowd_has_left();
  net::Awaitable<void> give_back();

  net::EventLoop& loop_;
  net::OffloadPool& offload_;
  net::Timer timer_;
  int rounds_ = 0;           // that are left
  std::uint64_t ended_ = 0;  // requests
  std::uint64_t done_ = 0;   // these and jobs of the pool, at the last look
  std::uint64_t crowd_ = 0;  // … since memory was given back for them
  bool busy_ = false;
};

}  // namespace chasqui
