// One client connection: reads requests one after the other, runs their handlers, notices when the client goes. Kept
// alive by its coroutine and by pending waits; loop thread only.
//
// 1. Idle, it has no buffer, no parser and no exchange: it waits for readability, and reads go to the shared scratch.
// 2. There is one timer. `deadline_` moves with every phase; the timer is only ever re-armed to an earlier time, and
//    otherwise finds out when it fires that it was too early.
// 3. While a handler may be waiting, one readability wait watches for the client to leave. What it reads meanwhile is
//    the next request and goes to `ahead_`, bounded; the watch goes on behind it.
// 4. mark_gone() is the one way out while an exchange runs: closes the socket, which ends every pending wait.
// 5. With TLS it begins with a handshake, and reads and writes go through `tls_`; without, straight to the socket.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "net/awaitable.h"
#include "net/http_parser.h"
#include "net/http_shared.h"
#include "net/memory_room.h"
#include "net/send_buffers.h"
#include "net/socket.h"
#include "net/tls_endpoint.h"

namespace chasqui::net {

class ConnectionExchange;

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  // Null: without TLS.
  HttpConnection(std::shared_ptr<HttpShared> shared, StreamSocket socket, TlsEndpoint* endpoint);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // The life of a connection, from accept to close.
  static Awaitable<void> run(std::shared_ptr<HttpConnection> self);

  // For the server: at once, or after the exchange that is running.
  void close() { mark_gone(); }
  void close_when_idle();

  // For the exchange.
  HttpShared& shared() { return *shared_; }
  // False: the client is gone. One write at a time.
  Awaitable<bool> send(SendBuffers buffers);
  // What the kernel takes without waiting. REQUIRES: no send is in progress.
  void send_now(SendBuffers& buffers);
  std::size_t unsent_bytes() const { return unsent_; }
  // While a body comes: what it holds, and since when.
  std::optional<MemoryHolding> body_on_its_way() const;
  // REQUIRES: body_on_its_way()
  void give_up_body();
  bool gone() const { return gone_; }
  void watch();
  // Lets the rest of the loop have its turn.
  Awaitable<void> yield();
  void set_gone_callback(std::function<void()> callback) { on_gone_ = std::move(callback); }

 private:
  enum class Phase { handshake, idle, header, body, write, linger };
  struct Presence;   // in the server's list
  struct Handshake;  // in its list of those that are in one

  Awaitable<bool> shake_hands(TlsEndpoint& endpoint);
  Awaitable<TlsSession::Step> shake_once(TlsEndpoint& endpoint);
  Awaitable<void> refuse_plain();
  Awaitable<void> serve();
  Awaitable<bool> wait_for_request();
  Awaitable<bool> exchange_once();
  Awaitable<bool> read_request(ConnectionExchange& exchange, HttpParser& parser);
  Awaitable<bool> read_more(ConnectionExchange& exchange, HttpParser& parser);
  void feed(ConnectionExchange& exchange, HttpParser& parser, std::string_view bytes);
  Awaitable<void> answer(ConnectionExchange& exchange);
  Awaitable<void> linger();

  void set_deadline(Phase phase, Duration limit);
  void clear_deadline() { deadline_ = kNever; }
  void arm_timer();
  void on_timer();
  void mark_gone();
  void watch_readable(SystemError error);
  void close_socket();

  std::size_t read_some(asio::mutable_buffer into, SystemError& error) {
    return tls_ ? tls_->read_some(into, error) : socket_.read_some(into, error);
  }
  std::size_t write_some(const SendBuffers& buffers, SystemError& error) {
    return tls_ ? tls_->write_some(buffers, error) : socket_.write_some(buffers, error);
  }
  StreamSocket::wait_type read_wait() const { return tls_ ? tls_->reads_for() : StreamSocket::wait_read; }
  StreamSocket::wait_type write_wait() const { return tls_ ? tls_->waits_for() : StreamSocket::wait_write; }

  const std::shared_ptr<HttpShared> shared_;
  StreamSocket socket_;
  TlsEndpoint* const endpoint_;
  std::shared_ptr<TlsSession> tls_;  // shared with the pool while it computes
  Timer timer_;
  std::shared_ptr<const HttpPeer> peer_;  // made when the first request comes
  TurnQueue::Turn turn_;
  std::string ahead_;  // read behind the running exchange, bounded by pipelined_bytes and one read
  std::function<void()> on_gone_;
  ConnectionExchange* reading_ = nullptr;  // the exchange whose request comes
  TimePoint deadline_ = kNever;
  TimePoint look_again_ = kNever;  // for a client's leaving, when `ahead_` is full and the watch would see only bytes
  TimePoint armed_ = kNever;
  std::size_t unsent_ = 0;
  std::size_t burst_ = 0;  // bytes moved without letting others run
  Phase phase_ = Phase::idle;
  bool waiting_idle_ = false;
  bool timed_out_ = false;
  bool gone_ = false;
  bool in_pool_ = false;   // which uses the socket: it must stay open
  bool watching_ = false;  // someone wants to know
  bool watch_armed_ = false;
};

}  // namespace chasqui::net
