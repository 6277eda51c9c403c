#include "net/turn_queue.h"

#include <boost/asio/post.hpp>

namespace chasqui::net {

Awaitable<void> TurnQueue::take(Turn& turn) {
  if (!is_open_) open_pass();
  const TimePoint now = loop_.now();
  if (turn.pass_ == pass_ && now < turn.ends_) co_return;
  if (waiting_.empty() && now < ends_) {
    turn.pass_ = pass_;
    turn.ends_ = ends_;
    co_return;
  }
  EventSignal signal(loop_);
  waiting_.push_back(&signal);
  co_await signal.wait();
  turn.pass_ = pass_;
  turn.ends_ = loop_.now() + time_ / kTurns;
}

void TurnQueue::open_pass() {
  is_open_ = true;
  ++pass_;
  ends_ = loop_.now() + time_;
  // Behind everything that is ready now.
  asio::post(loop_.executor(), [this] { next_pass(); });
}

void TurnQueue::next_pass() {
  loop_.turn_begins();
  is_open_ = false;
  if (waiting_.empty()) return;
  for (int i = 0; i < kTurns && !waiting_.empty(); ++i) {
    waiting_.front()->notify();  // it runs before what open_pass() posts
    waiting_.pop_front();
  }
  open_pass();
}

}  // namespace chasqui::net
