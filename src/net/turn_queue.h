// Turns on the loop for work that comes in large numbers, such as the messages of hundreds of connections: together
// they get a part of a millisecond of each pass of the loop over what is ready, so that whatever else is ready waits
// for one such part and not for all of them; and a few callers share it, so that the others wait for their turn no
// longer than they must. Owned by what the callers share, must outlive them; loop thread only.
//
//   TurnQueue::Turn turn;                  // of one caller, as long as it lives
//   co_await queue.take(turn);             // before each small piece of work
#pragma once

#include <cstdint>
#include <deque>

#include "base/clock.h"
#include "net/event_loop.h"
#include "net/event_signal.h"

namespace chasqui::net {

class TurnQueue {
 public:
  class Turn {
    friend class TurnQueue;
    std::uint64_t pass_ = 0;  // in which it was given; 0: never
    TimePoint ends_{};
  };

  // `time` is what all callers together get of one pass; each that gets its turn does at least one piece.
  TurnQueue(EventLoop& loop, Duration time) : loop_(loop), time_(time) {}
  TurnQueue(const TurnQueue&) = delete;
  TurnQueue& operator=(const TurnQueue&) = delete;

  // Returns at once while the caller has its turn, or none waits for one and there is time left in this pass.
  Awaitable<void> take(Turn& turn);

 private:
  static constexpr int kTurns = 4;  // in one pass, where so many wait

  void open_pass();
  void next_pass();

  EventLoop& loop_;
  const Duration time_;
  std::deque<EventSignal*> waiting_;
  std::uint64_t pass_ = 0;
  TimePoint ends_{};      // the time of this pass
  bool is_open_ = false;  // next_pass() is posted
};

}  // namespace chasqui::net
