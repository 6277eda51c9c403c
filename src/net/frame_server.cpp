#include "net/frame_server.h"

#include <utility>

#include "base/log.h"
#include "net/event_signal.h"

namespace chasqui::net {

struct FrameServer::State final : FrameShared, std::enable_shared_from_this<State> {
  State(EventLoop& event_loop, FrameMetrics& counters, const FrameLimits& bounds, MakeHandler make)
      : FrameShared(event_loop, counters, bounds, std::move(make)),
        room(event_loop),
        drain_timer(event_loop.executor()) {}

  static Awaitable<void> accept_all(std::shared_ptr<State> self);
  void connection_ended() override;
  void report_drained();
  void stop_listening();
  // Closing one may end others, and itself: the list changes meanwhile.
  void for_each(void (FrameConnection::*act)());

  std::optional<Listener> listener;
  EventSignal room;
  Timer drain_timer;
  std::function<void()> on_drained;
  bool abandoned = false;
};

Awaitable<void> FrameServer::State::accept_all(std::shared_ptr<State> self) {
  while (!self->draining) {
    if (self->connections.size() >= self->limits.connections) {
      co_await self->room.wait();
      continue;
    }
    std::optional<StreamSocket> socket = co_await self->listener->accept();
    if (!socket) co_return;
    auto connection = std::make_shared<FrameConnection>(self, std::move(*socket));
    self->loop.spawn(FrameConnection::run(std::move(connection)), "local socket");
  }
}

void FrameServer::State::connection_ended() {
  if (abandoned) return;
  room.notify();
  if (draining && connections.empty()) report_drained();
}

void FrameServer::State::report_drained() {
  drain_timer.cancel();
  if (on_drained) loop.post(std::exchange(on_drained, nullptr));
}

void FrameServer::State::stop_listening() {
  if (listener) listener->close();
  room.notify();
}

void FrameServer::State::for_each(void (FrameConnection::*act)()) {
  std::vector<std::shared_ptr<FrameConnection>> all;
  for (FrameConnection* connection : connections) {
    // One that is being destroyed is in the list, too.
    if (auto alive = connection->weak_from_this().lock()) all.push_back(std::move(alive));
  }
  for (const auto& connection : all) ((*connection).*act)();
}

FrameServer::FrameServer(EventLoop& loop, FrameMetrics& metrics, FrameLimits limits,
                         FrameShared::MakeHandler make_handler)
    : state_(std::make_shared<State>(loop, metrics, limits, std::move(make_handler))) {}

FrameServer::~FrameServer() {
  state_->draining = state_->abandoned = true;
  state_->stop_listening();
}

Result<BoundAddress> FrameServer::listen(const ListenAddress& address) {
  auto listener = Listener::open(state_->loop, address);
  if (!listener) return listener.error();
  CHECK(!state_->listener);
  state_->listener.emplace(std::move(*listener));
  state_->loop.spawn(State::accept_all(state_), "accept on the local socket");
  return state_->listener->bound();
}

void FrameServer::drain(TimePoint deadline, std::function<void()> done) {
  State& state = *state_;
  state.draining = true;
  state.on_drained = std::move(done);
  state.stop_listening();
  state.for_each(&FrameConnection::close_when_idle);
  if (state.connections.empty()) return state.report_drained();
  state.drain_timer.expires_at(deadline);
  state.drain_timer.async_wait([weak = std::weak_ptr<State>(state_)](SystemError error) {
    const auto self = weak.lock();
    if (error || !self) return;
    log_warning("closing connections of the local socket that did not finish in time",
                {{"connections", self->connections.size()}});
    self->for_each(&FrameConnection::close);
  });
}

std::size_t FrameServer::connections() const { return state_->connections.size(); }

}  // namespace chasqui::net
