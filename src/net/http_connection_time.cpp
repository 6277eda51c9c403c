// How long a connection may take for each phase of an exchange.
#include <algorithm>

#include "net/http_connection.h"

namespace chasqui::net {

void HttpConnection::set_deadline(Phase phase, Duration limit) {
  phase_ = phase;
  timed_out_ = false;
  deadline_ = shared_->loop.now() + limit;
  arm_timer();
}

void HttpConnection::arm_timer() {
  const TimePoint next = std::min(deadline_, look_again_);
  if (next >= armed_ || gone_) return;
  armed_ = next;
  timer_.expires_at(next);
  // Weak: a connection that ended must not wait for its timer.
  timer_.async_wait([weak = weak_from_this()](SystemError error) {
    const auto self = weak.lock();
    if (self && !error) self->on_timer();
  });
}

void HttpConnection::on_timer() {
  armed_ = kNever;
  shared_->loop.turn_begins();
  const TimePoint now = shared_->loop.now();
  if (now >= look_again_) {
    look_again_ = kNever;
    if (watching_ && !watch_armed_) watch_readable(SystemError());
  }
  if (now < deadline_) return arm_timer();
  clear_deadline();
  timed_out_ = true;
  NetMetrics& metrics = shared_->loop.metrics();
  SystemError ignored;
  switch (phase_) {
    case Phase::handshake: metrics.timeouts_handshake.add(); return mark_gone();
    case Phase::idle: metrics.timeouts_idle.add(); return mark_gone();
    case Phase::header: metrics.timeouts_header.add(); break;
    case Phase::body: metrics.timeouts_body.add(); break;
    case Phase::write: metrics.timeouts_write.add(); return mark_gone();
    case Phase::linger: return mark_gone();
  }
  // Ends the wait for more; the coroutine answers 408.
  socket_.cancel(ignored);
}

}  // namespace chasqui::net
