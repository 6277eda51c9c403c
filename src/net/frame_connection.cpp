#include "net/frame_connection.h"

#include <algorithm>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include "base/log.h"
#include "net/memory_room.h"

namespace chasqui::net {
namespace {

// Less of a message than this is read in any case: a short one is complete then, and gone.
constexpr std::size_t kReadAnyway = 8 * 1024;
constexpr Duration kMemoryPause = milliseconds(50);
// What an idle connection may keep for its next answer.
constexpr std::size_t kKeptBytes = 16 * 1024;

}  // namespace

FrameConnection::Busy::Busy(FrameConnection& connection) : connection_(connection.shared_from_this()) {
  ++connection_->busy_;
}

FrameConnection::Busy::~Busy() {
  if (!connection_) return;
  --connection_->busy_;
  connection_->end_when_idle();
}

FrameConnection::Held::Held(std::shared_ptr<FrameShared> shared, std::size_t bytes)
    : shared_(std::move(shared)), bytes_(bytes) {
  shared_->add_incomplete(bytes_);
}

void FrameConnection::Held::release() {
  if (shared_) shared_->add_incomplete(-bytes_);
  shared_.reset();
}

FrameConnection::FrameConnection(std::shared_ptr<FrameShared> shared, StreamSocket socket)
    : shared_(std::move(shared)),
      socket_(std::move(socket)),
      timer_(shared_->loop.executor()),
      peer_(describe_peer(socket_)),
      place_(shared_->connections.insert(shared_->connections.begin(), this)),
      scanner_(shared_->limits),
      taken_(shared_->loop) {
  SystemError ignored;
  socket_.non_blocking(true, ignored);
  handler_ = shared_->make_handler(*this);
  shared_->metrics.connections_accepted.add();
  shared_->metrics.connections_open.add(1);
}

FrameConnection::~FrameConnection() {
  if (shared_->goes_on == this) shared_->goes_on = nullptr;
  shared_->add_incomplete(-accounted_);
  shared_->metrics.connections_open.add(-1);
  shared_->connections.erase(place_);
  shared_->connection_ended();
}

Awaitable<void> FrameConnection::run(std::shared_ptr<FrameConnection> self) {
  self->watch_hangup();
  co_await self->serve();
  if (!self->ending() && self->scanner_.end()) {
    // The last line of a file that does not end in a line break.
    std::string line_break(1, '\n');
    co_await self->receive(std::move(line_break));
  }
  self->read_ended();
}

Awaitable<void> FrameConnection::serve() {
  while (!ending()) {
    SystemError error;
    if (must_wait_for_memory()) {
      co_await wait_for_memory();
      continue;
    }
    co_await shared_->turns.take(turn_);
    if (ending()) co_return;
    auto& scratch = shared_->scratch;
    const std::size_t n = socket_.read_some(asio::buffer(scratch), error);
    if (!error) {
      shared_->metrics.bytes_in.add(n);
      std::string bytes(scratch.data(), n);  // a handler may wait, and others read meanwhile
      co_await receive(std::move(bytes));
      continue;
    }
    if (error == asio::error::eof) co_return;
    if (error != asio::error::would_block) {
      mark_gone();
      co_return;
    }
    const bool arrived = co_await wait_for_bytes();
    if (!arrived) co_return;
  }
}

Awaitable<void> FrameConnection::receive(std::string bytes) {
  std::string_view rest = bytes;
  while (!ending()) {
    rest.remove_prefix(scanner_.feed(rest));
    account();
    if (scanner_.state() == FrameScanner::State::partial || ending()) break;
    if (scanner_.state() == FrameScanner::State::too_large) {
      const bool frames = scanner_.mode() == FrameScanner::Mode::frames;
      const std::size_t most = frames ? shared_->limits.frame_bytes : shared_->limits.line_bytes;
      const std::string what = frames ? "a frame" : "a line";
      break_off({ErrorCode::too_large, what + " has at most " + std::to_string(most) + " bytes", ""});
      co_return;
    }
    shared_->metrics.messages.add();
    read_deadline_ = settle_at_ = kNever;
    std::string message = scanner_.take();
    co_await shared_->turns.take(turn_);
    if (ending()) co_return;
    if (scanner_.mode() == FrameScanner::Mode::lines) {
      co_await handler_->line(std::move(message));
    } else {
      co_await handler_->frame(std::move(message));
    }
    if (unsent() > shared_->limits.unsent_bytes / 4) co_await client_reads();
  }
}

Awaitable<bool> FrameConnection::wait_for_bytes() {
  for (;;) {
    set_deadlines();
    const auto outcome = co_await socket_.async_wait(StreamSocket::wait_read, kAwait);
    const SystemError error = std::get<0>(outcome);
    shared_->loop.turn_begins();
    if (ending()) co_return false;
    if (!error) co_return true;
    if (error != asio::error::operation_aborted || !scanner_.unsettled()) co_return false;
    // The timer has ended the wait: nothing follows this line.
    scanner_.settle();
    watch_hangup();
    std::string nothing;
    co_await receive(std::move(nothing));
    if (ending()) co_return false;
  }
}

void FrameConnection::account() {
  const std::size_t held = scanner_.inside() ? scanner_.held() : 0;
  shared_->add_incomplete(held - accounted_);
  accounted_ = held;
  if (held == 0 && shared_->goes_on == this) shared_->goes_on = nullptr;
}

std::optional<FrameConnection::Held> FrameConnection::hold(std::size_t bytes) {
  account();  // it has come, and is on its way no more
  const std::size_t most = shared_->limits.incomplete_bytes;
  const std::size_t for_short = bytes <= kReadAnyway ? most / 8 : 0;  // that long ones leave
  if (shared_->incomplete_bytes + bytes > most + for_short) return std::nullopt;
  return Held(shared_, bytes);
}

bool FrameConnection::must_wait_for_memory() const {
  return shared_->goes_on != this && accounted_ >= kReadAnyway &&
         shared_->incomplete_bytes >= shared_->limits.incomplete_bytes;
}

// For others to end their messages, or to be given up.
Awaitable<void> FrameConnection::wait_for_memory() {
  set_deadlines();
  if (give_up_costliest()) co_return;
  if (shared_->goes_on == nullptr) {
    shared_->goes_on = this;  // else all might wait for each other
    co_return;
  }
  Timer pause(shared_->loop.executor(), kMemoryPause);
  co_await pause.async_wait(kAwait);
  shared_->loop.turn_begins();
}

bool FrameConnection::give_up_costliest() {
  const FrameLimits& limits = shared_->limits;
  const TimePoint now = shared_->loop.now();
  if (now < shared_->next_look) return false;
  std::vector<std::shared_ptr<FrameConnection>> inside;
  std::vector<MemoryHolding> held;
  for (FrameConnection* one : shared_->connections) {
    auto alive = one->weak_from_this().lock();  // one that is being destroyed is in the list, too
    if (!alive || one->ending() || !one->scanner_.inside()) continue;
    const TimePoint since = one->read_deadline_ == kNever ? now : one->read_deadline_ - limits.frame_time;
    held.push_back({one->peer_.uid, one->accounted_, since});
    inside.push_back(std::move(alive));
  }
  const auto found = costliest(held, limits.fresh_time, now);
  if (!found) {
    shared_->next_look = now + kMemoryPause;  // a thousand may wait, and each would look through all
    return false;
  }
  inside[*found]->break_off({ErrorCode::overloaded,
                             "others need the memory that this message has held for long; send it without a pause",
                             ""});
  return true;
}

void FrameConnection::read_ended() {
  read_closed_ = true;
  read_deadline_ = settle_at_ = kNever;
  if (!gone_) end_when_idle();
}

void FrameConnection::break_off(const Error& error) {
  if (ending()) return;
  shared_->metrics.broken.add();
  handler_->broken(error);
  finish();
  scanner_.drop();
  account();
}

void FrameConnection::close_when_idle() { end_when_idle(); }

void FrameConnection::end_when_idle() {
  if (busy_ == 0 && (read_closed_ || shared_->draining)) finish();
}

void FrameConnection::send() {
  if (gone_) {
    out_.clear();
    return;
  }
  if (blocked_) {
    if (unsent() <= waiting_max_) return;
    shared_->metrics.cut.add();
    log_info("a client of the local socket does not read: it is cut", {{"unsent", unsent()}});
    return mark_gone();
  }
  if (std::exchange(flush_posted_, true)) return;
  // Behind everybody whom the same step has woken: their tokens leave in one write.
  asio::post(shared_->loop.executor(), [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->shared_->loop.turn_begins();
    self->flush();
  });
}

void FrameConnection::flush() {
  if (blocked_) return;
  while (!gone_ && sent_ < out_.size()) {
    SystemError error;
    const std::size_t n = socket_.write_some(asio::buffer(out_.data() + sent_, out_.size() - sent_), error);
    if (error == asio::error::would_block) return wait_for_room();
    if (error) return mark_gone();
    sent_ += n;
    shared_->metrics.bytes_out.add(n);
  }
  sent_ = 0;
  waiting_max_ = 0;
  out_.clear();
  if (out_.capacity() > kKeptBytes) std::string().swap(out_);
  if (finishing_) mark_gone();
}

void FrameConnection::wait_for_room() {
  out_.erase(0, std::exchange(sent_, 0));
  blocked_ = true;
  // One answer may be longer than all that may wait, and its client reads.
  if (waiting_max_ == 0) waiting_max_ = unsent() + shared_->limits.unsent_bytes;
  write_deadline_ = shared_->loop.now() + shared_->limits.write_time;
  arm_timer();
  socket_.async_wait(StreamSocket::wait_write, [self = shared_from_this()](SystemError error) {
    self->blocked_ = false;
    self->write_deadline_ = kNever;
    if (error || self->gone_) return self->mark_gone();
    self->shared_->loop.turn_begins();
    self->flush();
    self->taken_.notify();
  });
}

// The messages that follow would be answered into memory.
Awaitable<void> FrameConnection::client_reads() {
  flush();
  while (!gone_ && unsent() > shared_->limits.unsent_bytes / 4) co_await taken_.wait();
}

void FrameConnection::finish() {
  if (ending()) return;
  finishing_ = true;
  if (unsent() == 0) return mark_gone();
  if (!blocked_) send();
}

// A closed socket hangs up, a closed half does not; reading cannot tell them apart, and does not happen while a
// handler waits.
void FrameConnection::watch_hangup() {
  socket_.async_wait(StreamSocket::wait_error, [weak = weak_from_this()](SystemError error) {
    const auto self = weak.lock();
    if (!self || error || self->gone_) return;
    self->shared_->loop.turn_begins();
    if (hung_up(self->socket_)) self->mark_gone();
  });
}

void FrameConnection::set_deadlines() {
  const TimePoint now = shared_->loop.now();
  if (scanner_.inside() && read_deadline_ == kNever) read_deadline_ = now + shared_->limits.frame_time;
  if (scanner_.unsettled()) settle_at_ = now + shared_->limits.settle_time;
  arm_timer();
}

void FrameConnection::arm_timer() {
  const TimePoint next = std::min({settle_at_, read_deadline_, write_deadline_});
  if (next >= armed_ || gone_) return;
  armed_ = next;
  timer_.expires_at(next);
  timer_.async_wait([weak = weak_from_this()](SystemError error) {
    const auto self = weak.lock();
    if (self && !error) self->on_timer();
  });
}

void FrameConnection::on_timer() {
  armed_ = kNever;
  if (gone_) return;
  shared_->loop.turn_begins();
  const TimePoint now = shared_->loop.now();
  if (now >= write_deadline_) return mark_gone();
  if (now >= read_deadline_) {
    read_deadline_ = kNever;
    break_off({ErrorCode::invalid_request, "the message took too long", ""});
  } else if (now >= settle_at_) {
    settle_at_ = kNever;
    SystemError ignored;
    if (scanner_.unsettled() && !blocked_) socket_.cancel(ignored);
  }
  arm_timer();
}

void FrameConnection::mark_gone() {
  if (gone_) return;
  gone_ = true;
  SystemError ignored;
  socket_.close(ignored);
  timer_.cancel();
  taken_.notify();
  handler_->gone();
}

}  // namespace chasqui::net
