// One connection of the local socket: bytes in, messages to its handler, one after the other; what the handler appends
// to outgoing() leaves in one write for each turn of the loop, whichever coroutine appended it. Kept alive by its
// coroutine and by every Busy; loop thread only.
//
// bounded: where messages on their way, and those that handlers hold(), have FrameLimits::incomplete_bytes together,
// connections that are in the middle of one are not read until others are done, and the costliest is given up
// (net/memory_room); no handler may hold another one. No message is handled
// while a quarter of FrameLimits::unsent_bytes wait for a client that does not read, and it is cut when as many as that
// have come behind what the kernel did not take at first. A client that closes its sending half is still answered; one
// that closes its socket is noticed at once.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/metric_set.h"
#include "net/event_loop.h"
#include "net/event_signal.h"
#include "net/frame_limits.h"
#include "net/frame_scanner.h"
#include "net/http_request.h"
#include "net/socket.h"
#include "net/turn_queue.h"

namespace chasqui::net {

class FrameConnection;

// What the messages of one connection mean. Owned by the connection.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;

  // In the order they came; the next one is read when this returns.
  virtual Awaitable<void> frame(std::string body) = 0;
  virtual Awaitable<void> line(std::string text) = 0;
  // What came cannot be read any further: too large, or too slow. The connection ends when what is said now has left.
  virtual void broken(const Error& error) = 0;
  // The client is gone. Runs inside other calls and must not resume any coroutine.
  virtual void gone() = 0;
};

struct FrameMetrics : MetricSet {
  Gauge connections_open{*this, {"chasqui_socket_connections_open", "Connections of the local socket open now."}};
  Counter connections_accepted{
      *this, {"chasqui_socket_connections_accepted_total", "Connections of the local socket accepted."}};
  Counter messages{*this, {"chasqui_socket_messages_total", "Frames and lines received."}};
  Counter bytes_in{*this, {"chasqui_socket_received_bytes_total", "Bytes received on the local socket."}};
  Counter bytes_out{*this, {"chasqui_socket_sent_bytes_total", "Bytes sent on the local socket."}};
  Gauge incomplete_bytes{
      *this, {"chasqui_socket_incomplete_bytes", "Bytes of messages on their way, or that wait to be read."}};
  Counter broken{*this,
                 {"chasqui_socket_broken_total",
                  "Connections ended because a message was too large, too slow, or held memory for too long."}};
  Counter cut{*this, {"chasqui_socket_cut_total", "Connections cut because their client did not read."}};
};

// What all connections of one server share.
struct FrameShared {
  using MakeHandler = std::function<std::unique_ptr<FrameHandler>(FrameConnection&)>;

  FrameShared(EventLoop& event_loop, FrameMetrics& counters, const FrameLimits& bounds, MakeHandler make)
      : loop(event_loop),
        metrics(counters),
        limits(bounds),
        make_handler(std::move(make)),
        turns(event_loop, bounds.turn_time),
        scratch(64 * 1024) {}
  virtual ~FrameShared() = default;

  virtual void connection_ended() = 0;
  // Or, by what wraps round, takes them away.
  void add_incomplete(std::size_t bytes) {
    incomplete_bytes += bytes;
    metrics.incomplete_bytes.set(static_cast<std::int64_t>(incomplete_bytes));
  }

  EventLoop& loop;
  FrameMetrics& metrics;
  const FrameLimits limits;
  const MakeHandler make_handler;
  bool draining = false;
  std::list<FrameConnection*> connections;
  std::size_t incomplete_bytes = 0;
  const FrameConnection* goes_on = nullptr;  // ends its message though there is no memory
  TimePoint next_look{};                     // for a message to give up
  TurnQueue turns;                           // to read, and to handle messages
  std::vector<char> scratch;                 // every read lands here first
};

class FrameConnection : public std::enable_shared_from_this<FrameConnection> {
 public:
  // Held by each coroutine that still has something to write; keeps the connection.
  class Busy {
   public:
    explicit Busy(FrameConnection& connection);
    Busy(Busy&& other) noexcept = default;
    Busy& operator=(Busy&&) = delete;
    ~Busy();

   private:
    std::shared_ptr<FrameConnection> connection_;
  };

  // The bytes of a message that waits to be read: they count as those that are on their way.
  class Held {
   public:
    Held(std::shared_ptr<FrameShared> shared, std::size_t bytes);
    Held(Held&& other) noexcept = default;
    Held& operator=(Held&&) = delete;
    ~Held() { release(); }
    void release();

   private:
    std::shared_ptr<FrameShared> shared_;
    std::size_t bytes_;
  };

  FrameConnection(std::shared_ptr<FrameShared> shared, StreamSocket socket);
  ~FrameConnection();
  FrameConnection(const FrameConnection&) = delete;
  FrameConnection& operator=(const FrameConnection&) = delete;

  // From accept until there is nothing more to read.
  static Awaitable<void> run(std::shared_ptr<FrameConnection> self);

  // For the server: at once, or when no request runs any more.
  void close() { mark_gone(); }
  void close_when_idle();

  // For the handler. send() after appending; what is appended when the client is gone is dropped.
  std::string& outgoing() { return out_; }
  void send();
  // Closes when everything has been sent.
  void finish();
  // A message that frame() was given waits for something. Nothing: there is no memory for it.
  std::optional<Held> hold(std::size_t bytes);
  bool gone() const { return gone_; }
  bool ending() const { return gone_ || finishing_; }
  FrameScanner::Mode mode() const { return scanner_.mode(); }
  const HttpPeer& peer() const { return peer_; }
  EventLoop& loop() { return shared_->loop; }

 private:
  Awaitable<void> serve();
  Awaitable<void> receive(std::string bytes);
  Awaitable<bool> wait_for_bytes();
  void read_ended();
  void break_off(const Error& error);
  void end_when_idle();
  void account();
  bool must_wait_for_memory() const;
  Awaitable<void> wait_for_memory();
  bool give_up_costliest();
  void flush();
  void wait_for_room();
  Awaitable<void> client_reads();
  std::size_t unsent() const { return out_.size() - sent_; }
  void watch_hangup();
  void set_deadlines();
  void arm_timer();
  void on_timer();
  void mark_gone();

  const std::shared_ptr<FrameShared> shared_;
  StreamSocket socket_;
  Timer timer_;
  const HttpPeer peer_;
  const std::list<FrameConnection*>::iterator place_;
  FrameScanner scanner_;
  std::unique_ptr<FrameHandler> handler_;
  TurnQueue::Turn turn_;
  std::string out_;
  std::size_t sent_ = 0;       // of out_
  std::size_t accounted_ = 0;  // of FrameShared::incomplete_bytes
  std::size_t busy_ = 0;
  TimePoint settle_at_ = kNever;
  TimePoint read_deadline_ = kNever;   // of the message that is on its way
  TimePoint write_deadline_ = kNever;  // of a client that takes nothing
  TimePoint armed_ = kNever;
  EventSignal taken_;  // the kernel has taken some of out_, or the client is gone
  bool flush_posted_ = false;
  bool blocked_ = false;         // the kernel takes no more
  std::size_t waiting_max_ = 0;  // bytes that may wait until the kernel has taken all; 0: none wait
  bool read_closed_ = false;     // the client has said everything
  bool finishing_ = false;
  bool gone_ = false;
};

}  // namespace chasqui::net
