#include "net/http_connection.h"

#include <algorithm>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include "net/connection_exchange.h"
#include "net/tls_hello.h"

namespace chasqui::net {
namespace {

constexpr Duration kLookAgain = seconds(1);
// Before the rest of the loop gets its turn. In chunks of a byte each the bytes take half a millisecond.
constexpr std::size_t kBurstBytes = 256 * 1024;
// … and what a read costs beside them: a record of TLS may hold a single one.
constexpr std::size_t kReadBytes = 4096;

}  // namespace

struct HttpConnection::Handshake {
  Handshake(HttpShared& owner, HttpConnection* connection)
      : shared(owner), place(shared.handshakes.insert(shared.handshakes.end(), connection)) {}
  ~Handshake() { shared.handshakes.erase(place); }

  HttpShared& shared;
  std::list<HttpConnection*>::iterator place;
};

struct HttpConnection::Presence {
  Presence(HttpShared& owner, HttpConnection* connection) : shared(owner) {
    shared.connections.push_front(connection);
    place = shared.connections.begin();
    shared.loop.metrics().connections_accepted.add();
    shared.loop.metrics().connections_open.add(1);
  }
  ~Presence() {
    shared.connections.erase(place);
    shared.loop.metrics().connections_open.add(-1);
    shared.connection_ended();
  }

  HttpShared& shared;
  std::list<HttpConnection*>::iterator place;
};

HttpConnection::HttpConnection(std::shared_ptr<HttpShared> shared, StreamSocket socket, TlsEndpoint* endpoint)
    : shared_(std::move(shared)), socket_(std::move(socket)), endpoint_(endpoint), timer_(shared_->loop.executor()) {
  SystemError ignored;
  socket_.non_blocking(true, ignored);
  configure_stream(socket_, shared_->limits.write_time, shared_->limits.unsent_bytes);
}

Awaitable<void> HttpConnection::run(std::shared_ptr<HttpConnection> self) {
  const Presence presence(*self->shared_, self.get());
  bool ready = true;
  if (self->endpoint_ != nullptr) ready = co_await self->shake_hands(*self->endpoint_);
  if (ready) co_await self->serve();
  self->close_socket();
}

// Those who are slow are closed first where there are too many: an honest client needs some milliseconds.
Awaitable<bool> HttpConnection::shake_hands(TlsEndpoint& endpoint) {
  const Handshake seat(*shared_, this);
  if (shared_->handshakes.size() > shared_->limits.handshakes) {
    const auto oldest = std::ranges::find_if(shared_->handshakes, [](const auto* other) { return !other->gone(); });
    (*oldest)->close();
  }
  tls_ = TlsSession::open(endpoint.identity(), socket_);
  set_deadline(Phase::handshake, shared_->limits.handshake_time);
  co_await hello_arrives(shared_->loop, socket_);
  auto step = tls_ ? TlsSession::Step::wants_read : TlsSession::Step::failed;
  while (!gone_ && (step == TlsSession::Step::wants_read || step == TlsSession::Step::wants_write)) {
    const bool reads = step == TlsSession::Step::wants_read;
    const StreamSocket::wait_type what = reads ? StreamSocket::wait_read : StreamSocket::wait_write;
    const auto ready = co_await socket_.async_wait(what, kAwait);
    shared_->loop.turn_begins();
    if (std::get<0>(ready) || gone_) break;
    step = co_await shake_once(endpoint);
  }
  clear_deadline();
  NetMetrics& metrics = shared_->loop.metrics();
  const bool done = step == TlsSession::Step::done && !gone_;
  (done ? metrics.handshakes : metrics.handshakes_failed).add();
  if (step == TlsSession::Step::plain_http && !gone_) co_await refuse_plain();
  co_return done;
}

Awaitable<TlsSession::Step> HttpConnection::shake_once(TlsEndpoint& endpoint) {
  in_pool_ = true;
  auto work = [tls = tls_] { return tls->shake(); };
  const Result<TlsSession::Step> step = co_await endpoint.pool().run(std::move(work));
  in_pool_ = false;
  co_return step ? *step : TlsSession::Step::failed;
}

// Who types http:// instead of https:// is told so, in what they can read.
Awaitable<void> HttpConnection::refuse_plain() {
  tls_ = nullptr;
  ConnectionExchange exchange(*this);
  exchange.close_after();
  HttpResponse refusal = shared_->router.error(400, "This port speaks TLS: use https://.");
  co_await exchange.respond(std::move(refusal));
  if (!gone_) co_await linger();
}

Awaitable<void> HttpConnection::serve() {
  bool again = true;
  while (again && !gone_) {
    if (ahead_.empty()) {
      const bool arrived = co_await wait_for_request();
      if (!arrived) co_return;
    } else {
      co_await shared_->turns.take(turn_);
    }
    again = co_await exchange_once();
  }
}

Awaitable<bool> HttpConnection::wait_for_request() {
  if (shared_->draining || gone_) co_return false;
  std::string().swap(ahead_);
  if (tls_ && tls_->has_unread()) co_return true;
  set_deadline(Phase::idle, shared_->limits.keep_alive_time);
  waiting_idle_ = true;
  const auto outcome = co_await socket_.async_wait(StreamSocket::wait_read, kAwait);
  waiting_idle_ = false;
  shared_->loop.turn_begins();
  clear_deadline();
  co_return !std::get<0>(outcome) && !gone_;
}

Awaitable<bool> HttpConnection::exchange_once() {
  ConnectionExchange exchange(*this);
  bool arrived = false;
  reading_ = &exchange;
  {
    HttpParser parser(shared_->limits, exchange.incoming());
    arrived = co_await read_request(exchange, parser);
  }
  reading_ = nullptr;
  clear_deadline();
  if (!arrived) co_return false;
  co_await answer(exchange);
  watching_ = false;
  look_again_ = kNever;
  if (gone_) co_return false;
  if (exchange.can_continue()) co_return true;
  if (exchange.complete()) co_await linger();
  co_return false;
}

Awaitable<void> HttpConnection::answer(ConnectionExchange& exchange) {
  if (exchange.refused()) {
    HttpResponse refusal = exchange.take_refusal();
    co_await exchange.respond(std::move(refusal));
    co_return;
  }
  const bool returned = co_await shared_->loop.guard(exchange.handler()(exchange), "handler");
  on_gone_ = nullptr;  // it may point into the handler's frame, which is gone
  if (gone_ || exchange.response_started()) co_return;
  HttpResponse failure = shared_->router.error(500, returned ? "The server gave no answer." : "The server failed.");
  co_await exchange.respond(std::move(failure));
}

// Reads until the request is complete or refused; false when the connection ended before.
Awaitable<bool> HttpConnection::read_request(ConnectionExchange& exchange, HttpParser& parser) {
  if (!peer_) peer_ = std::make_shared<const HttpPeer>(describe_peer(socket_));
  exchange.incoming().peer = peer_;
  const std::string ahead = std::exchange(ahead_, std::string());
  feed(exchange, parser, ahead);
  bool continued = false;
  while (!exchange.refused() && parser.state() != HttpParser::State::complete) {
    const bool in_body = parser.state() == HttpParser::State::body;
    if (in_body && !continued && parser.expects_continue() && exchange.request().body.empty()) {
      continued = true;
      SendBuffers go_on{"HTTP/1.1 100 Continue\r\n\r\n"};
      const bool sent = co_await send(go_on);
      if (!sent) co_return false;
    }
    const bool open = co_await read_more(exchange, parser);
    if (!open) co_return false;
  }
  co_return true;
}

// One read, or one wait for it.
Awaitable<bool> HttpConnection::read_more(ConnectionExchange& exchange, HttpParser& parser) {
  SystemError error;
  const std::size_t n = read_some(asio::buffer(shared_->scratch), error);
  if (!error) {
    shared_->loop.metrics().bytes_in.add(n);
    feed(exchange, parser, std::string_view(shared_->scratch.data(), n));
    burst_ += n + kReadBytes;
    if (burst_ > kBurstBytes) co_await yield();
    co_return true;
  }
  const bool idle = parser.untouched();  // but for a line end that some clients send behind a body
  if (error != asio::error::would_block || (idle && shared_->draining)) co_return false;
  const bool in_body = parser.state() == HttpParser::State::body;
  const Phase phase = in_body ? Phase::body : Phase::header;
  if (idle) set_deadline(Phase::idle, shared_->limits.keep_alive_time);
  if (!idle && (deadline_ == kNever || phase_ != phase)) {
    set_deadline(phase, in_body ? shared_->limits.body_time : shared_->limits.header_time);
  }
  waiting_idle_ = idle;
  const auto outcome = co_await socket_.async_wait(read_wait(), kAwait);
  waiting_idle_ = false;
  shared_->loop.turn_begins();
  if (timed_out_ && !gone_) {
    exchange.close_after();
    exchange.refuse(shared_->router.error(408, in_body ? "The body took too long." : "The headers took too long."));
    co_return true;
  }
  co_return (exchange.refused() || !std::get<0>(outcome)) && !gone_;
}

std::optional<MemoryHolding> HttpConnection::body_on_its_way() const {
  if (reading_ == nullptr || reading_->refused() || reading_->request().body.empty()) return std::nullopt;
  const bool waits = phase_ == Phase::body && deadline_ != kNever;
  const TimePoint since = waits ? deadline_ - shared_->limits.body_time : shared_->loop.now();
  return MemoryHolding{{}, reading_->request().body.size(), since};
}

void HttpConnection::give_up_body() {
  SystemError ignored;
  reading_->refuse_body("Others need the memory that this request has held for long; send it without a pause.");
  socket_.cancel(ignored);  // ends the wait for more
}

// What is left after the request belongs to the next one.
void HttpConnection::feed(ConnectionExchange& exchange, HttpParser& parser, std::string_view bytes) {
  bool going = true;
  while (going && !exchange.refused()) {
    bytes.remove_prefix(parser.feed(bytes));
    switch (parser.state()) {
      case HttpParser::State::head_done:
        exchange.take_route(shared_->router.enter(exchange.incoming()));
        parser.accept_body();
        // Refused with the body on its way: it will not be read.
        if (exchange.refused() && parser.state() != HttpParser::State::complete) exchange.close_after();
        going = parser.state() == HttpParser::State::body;
        break;
      case HttpParser::State::refused:
        shared_->loop.metrics().requests_refused.add();
        exchange.close_after();
        exchange.refuse(shared_->router.error(parser.refusal().status, parser.refusal().message));
        break;
      case HttpParser::State::head:
      case HttpParser::State::body:
      case HttpParser::State::complete: going = false; break;
    }
  }
  if (parser.state() == HttpParser::State::complete) reading_ = nullptr;
  exchange.account_body();
  if (parser.state() == HttpParser::State::complete) ahead_.append(bytes);
}

Awaitable<bool> HttpConnection::send(SendBuffers buffers) {
  unsent_ = buffers.unsent();
  while (unsent_ > 0 && !gone_) {
    SystemError error;
    const std::size_t n = write_some(buffers, error);
    if (!error) {
      buffers.consume(n);
      unsent_ = buffers.unsent();
      shared_->loop.metrics().bytes_out.add(n);
      burst_ += n;
      if (burst_ > kBurstBytes) co_await yield();
      continue;
    }
    if (error != asio::error::would_block) {
      mark_gone();
      break;
    }
    set_deadline(Phase::write, shared_->limits.write_time);
    const auto outcome = co_await socket_.async_wait(write_wait(), kAwait);
    shared_->loop.turn_begins();
    clear_deadline();
    if (std::get<0>(outcome)) mark_gone();
  }
  unsent_ = 0;
  co_return !gone_;
}

void HttpConnection::send_now(SendBuffers& buffers) {
  if (gone_) return;
  SystemError error;
  const std::size_t n = write_some(buffers, error);
  if (error && error != asio::error::would_block) return mark_gone();
  buffers.consume(n);
  shared_->loop.metrics().bytes_out.add(n);
}

// A client that is still sending would, on close(), get a reset, and lose the answer that says why. So: announce the
// end, and swallow what comes for a while.
Awaitable<void> HttpConnection::linger() {
  SystemError error;
  if (tls_) tls_->say_end();
  socket_.shutdown(StreamSocket::shutdown_send, error);
  set_deadline(Phase::linger, shared_->limits.linger_time);
  while (!gone_ && !error) {
    const std::size_t n = socket_.read_some(asio::buffer(shared_->scratch), error);
    if (!error) {
      burst_ += n + kReadBytes;
      if (burst_ > kBurstBytes) co_await yield();
    } else if (error == asio::error::would_block) {
      const auto outcome = co_await socket_.async_wait(StreamSocket::wait_read, kAwait);
      error = std::get<0>(outcome);
    }
  }
}

Awaitable<void> HttpConnection::yield() {
  burst_ = 0;
  co_await asio::post(shared_->loop.executor(), kAwait);
  shared_->loop.turn_begins();
}

void HttpConnection::close_when_idle() {
  if (waiting_idle_) mark_gone();
}

void HttpConnection::close_socket() {
  SystemError ignored;
  timer_.cancel();
  if (in_pool_) {
    socket_.shutdown(StreamSocket::shutdown_both, ignored);  // and closed when the pool is done with it
    return;
  }
  if (tls_ && socket_.is_open()) tls_->say_end();
  socket_.close(ignored);
}

void HttpConnection::mark_gone() {
  if (gone_) return;
  gone_ = true;
  close_socket();
  if (watching_) shared_->loop.metrics().clients_gone.add();
  if (const auto callback = std::exchange(on_gone_, nullptr)) callback();
}

void HttpConnection::watch() {
  watching_ = true;
  if (watch_armed_ || gone_) return;
  watch_armed_ = true;
  const auto on_readable = [self = shared_from_this()](SystemError error) { self->watch_readable(error); };
  socket_.async_wait(read_wait(), on_readable);
}

void HttpConnection::watch_readable(SystemError error) {
  watch_armed_ = false;
  if (!watching_ || gone_ || error == asio::error::operation_aborted) return;
  shared_->loop.turn_begins();
  const std::size_t pipelined = shared_->limits.pipelined_bytes;
  const std::size_t room = pipelined - std::min(ahead_.size(), pipelined);
  if (room == 0 && !error) {
    // The rest stays in the kernel and stops the client; behind it, only the timer can see it leave.
    if (closed_behind_bytes(socket_)) return mark_gone();
    look_again_ = shared_->loop.now() + kLookAgain;
    return arm_timer();
  }
  auto& scratch = shared_->scratch;
  std::size_t n = 0;
  if (!error) n = read_some(asio::buffer(scratch.data(), std::min(room, scratch.size())), error);
  if (error && error != asio::error::would_block) return mark_gone();
  shared_->loop.metrics().bytes_in.add(n);
  ahead_.append(scratch.data(), n);
  watch();
}

}  // namespace chasqui::net
