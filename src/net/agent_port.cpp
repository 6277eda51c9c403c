#include "net/agent_port.h"

#include <array>
#include <optional>
#include <utility>

#include <boost/asio/error.hpp>

#include "base/limits.h"

namespace chasqui::net {

struct AgentPort::State {
  State(EventLoop& event_loop, std::function<std::string_view()> say) : loop(event_loop), line(std::move(say)) {}

  static Awaitable<void> accept_all(std::shared_ptr<State> self);

  EventLoop& loop;
  const std::function<std::string_view()> line;
  std::optional<Listener> listener;
  std::size_t open = 0;
};

// A connection that has its line. What it has sent is read before it is closed: bytes that are left unread would make
// the kernel reset the connection, and the other side lose the line.
struct AgentPort::Check : std::enable_shared_from_this<Check> {
  Check(std::shared_ptr<State> owner, StreamSocket connection)
      : state(std::move(owner)), socket(std::move(connection)), timer(state->loop.executor()) {
    ++state->open;
  }
  ~Check() { --state->open; }

  static Awaitable<void> run(std::shared_ptr<Check> self);

  const std::shared_ptr<State> state;
  StreamSocket socket;
  Timer timer;
};

Awaitable<void> AgentPort::Check::run(std::shared_ptr<Check> self) {
  self->timer.expires_after(kTimeLimit<"agent_seconds">);
  self->timer.async_wait([weak = self->weak_from_this()](SystemError cancelled) {
    const auto late = weak.lock();
    SystemError ignored;
    if (late && !cancelled) late->socket.close(ignored);
  });
  std::array<char, 256> unread;
  SystemError error;
  while (!error) {
    const auto outcome = co_await self->socket.async_wait(StreamSocket::wait_read, kAwait);
    self->state->loop.turn_begins();
    error = std::get<0>(outcome);
    if (!error) self->socket.read_some(asio::buffer(unread), error);
    if (error == asio::error::would_block) error = {};
  }
  self->timer.cancel();
}

Awaitable<void> AgentPort::State::accept_all(std::shared_ptr<State> self) {
  for (;;) {
    std::optional<StreamSocket> socket = co_await self->listener->accept();
    if (!socket) co_return;
    SystemError error;
    socket->non_blocking(true, error);
    const std::string_view line = self->line();
    socket->write_some(asio::buffer(line), error);
    if (!error) socket->shutdown(StreamSocket::shutdown_send, error);
    if (error || self->open >= kSizeLimit<"agent_connections">) continue;
    auto check = std::make_shared<Check>(self, std::move(*socket));
    self->loop.spawn(Check::run(std::move(check)), "agent check");
  }
}

AgentPort::AgentPort(EventLoop& loop, std::function<std::string_view()> line)
    : state_(std::make_shared<State>(loop, std::move(line))) {}

AgentPort::~AgentPort() {
  if (state_->listener) state_->listener->close();
}

Result<BoundAddress> AgentPort::listen(const ListenAddress& address) {
  auto listener = Listener::open(state_->loop, address);
  if (!listener) return listener.error();
  CHECK(!state_->listener);
  state_->listener.emplace(std::move(*listener));
  state_->loop.spawn(State::accept_all(state_), "agent port");
  return state_->listener->bound();
}

std::size_t AgentPort::connections() const { return state_->open; }

}  // namespace chasqui::net
