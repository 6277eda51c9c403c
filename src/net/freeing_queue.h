// Frees in the offload pool what would hold the loop up: what was made bit by bit, as sessions are, may expire all at
// once, and the allocator then takes a tenth of a second for millions of small blocks. Loop thread only; owned by the
// application, must be destroyed before the pool. What is handed over after that is freed at once.
//
// bounded: by things, each of which was bounded where it comes from. What the pool has no room for waits here.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/free_later.h"
#include "base/limits.h"
#include "net/event_loop.h"
#include "net/offload.h"

namespace chasqui::net {

class FreeingQueue {
 public:
  FreeingQueue(EventLoop& loop, OffloadPool& pool, std::size_t most = kSizeLimit<"freed_later">);
  ~FreeingQueue();
  FreeingQueue(const FreeingQueue&) = delete;
  FreeingQueue& operator=(const FreeingQueue&) = delete;

  // May be called after the queue, the pool and the loop have gone.
  FreeLater free_later() const;
  std::size_t waiting() const { return state_->waiting.size(); }

 private:
  using Things = std::vector<std::shared_ptr<const void>>;
  struct State {
    EventLoop& loop;
    OffloadPool* pool;  // null: the queue has gone
    const std::size_t most;
    Things waiting{};
    bool running = false;
  };
  using StatePtr = std::shared_ptr<State>;

  static void take(const StatePtr& state, std::shared_ptr<const void> thing);
  static Awaitable<void> free_all(StatePtr state);

  const StatePtr state_;
};

}  // namespace chasqui::net
