// A port that says one line to each connection and closes it: what HAProxy calls an agent check. Nothing that a client
// sends is looked at. Owned by the application; loop thread only. Destroy it after the loop has stopped and before the
// loop itself.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "net/event_loop.h"
#include "net/listener.h"

namespace chasqui::net {

class AgentPort {
 public:
  // `line` is asked for each connection, and is short: it fits into the buffer of a fresh socket.
  AgentPort(EventLoop& loop, std::function<std::string_view()> line);
  ~AgentPort();
  AgentPort(const AgentPort&) = delete;
  AgentPort& operator=(const AgentPort&) = delete;

  // Once.
  Result<BoundAddress> listen(const ListenAddress& address);

  // Those that have the line and have not closed yet; bounded.
  std::size_t connections() const;

 private:
  struct State;
  struct Check;
  std::shared_ptr<State> state_;
};

}  // namespace chasqui::net
