// The server of the local socket: accepts, keeps the connections, drains. Owned by the application; loop thread only.
// Destroy it after the loop has stopped and before the loop itself; handlers must have ended by then (drain() sees to
// it).
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "net/frame_connection.h"
#include "net/listener.h"

namespace chasqui::net {

class FrameServer {
 public:
  // `make_handler` is called for each connection and gives it what its messages mean.
  FrameServer(EventLoop& loop, FrameMetrics& metrics, FrameLimits limits, FrameShared::MakeHandler make_handler);
  ~FrameServer();
  FrameServer(const FrameServer&) = delete;
  FrameServer& operator=(const FrameServer&) = delete;

  // Binds and starts to accept.
  Result<BoundAddress> listen(const ListenAddress& address);

  // Stops accepting, removes the socket's file, closes connections that wait for nothing, lets the others get their
  // answers until `deadline`, closes what is left then, and calls `done` when the last connection has ended.
  void drain(TimePoint deadline, std::function<void()> done);

  std::size_t connections() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace chasqui::net
