#include "net/http_server.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "net/event_signal.h"
#include "net/http_connection.h"

namespace chasqui::net {

// An open listener and what its accept loop waits for while the server is full.
struct ListenerSeat {
  ListenerSeat(EventLoop& loop, Listener open, TlsEndpoint* tls)
      : listener(std::move(open)), room(loop), endpoint(tls) {}

  Listener listener;
  EventSignal room;
  TlsEndpoint* const endpoint;
};

struct HttpServer::State final : HttpShared, std::enable_shared_from_this<State> {
  State(EventLoop& event_loop, const Router& routes, const HttpLimits& bounds)
      : HttpShared(event_loop, routes, bounds),
        connections_max(bounds.connections_max()),
        drain_timer(event_loop.executor()) {}

  static Awaitable<void> accept_all(std::shared_ptr<State> self, ListenerSeat* seat);
  void stop_listening();
  void connection_ended() override;
  void report_drained();

  const std::size_t connections_max;
  std::vector<std::unique_ptr<ListenerSeat>> seats;
  TlsEndpoint* endpoint = nullptr;
  Timer drain_timer;
  std::function<void()> on_drained;
  bool abandoned = false;  // the server is gone, and perhaps the loop's timers with it
};

Awaitable<void> HttpServer::State::accept_all(std::shared_ptr<State> self, ListenerSeat* seat) {
  while (!self->draining) {
    if (self->connections.size() >= self->connections_max) {
      self->loop.metrics().accept_pauses.add();
      co_await seat->room.wait();
      continue;
    }
    std::optional<StreamSocket> socket = co_await seat->listener.accept();
    if (!socket) co_return;
    auto connection = std::make_shared<HttpConnection>(self, std::move(*socket), seat->endpoint);
    self->loop.spawn(HttpConnection::run(std::move(connection)), "connection");
  }
}

void HttpServer::State::stop_listening() {
  for (const auto& seat : seats) {
    seat->listener.close();
    seat->room.notify();
  }
}

void HttpServer::State::connection_ended() {
  if (abandoned) return;
  for (const auto& seat : seats) seat->room.notify();
  if (draining && connections.empty()) report_drained();
}

void HttpServer::State::report_drained() {
  drain_timer.cancel();
  if (on_drained) loop.post(std::exchange(on_drained, nullptr));
}

HttpServer::HttpServer(EventLoop& loop, const Router& router, HttpLimits limits)
    : state_(std::make_shared<State>(loop, router, limits)) {}

HttpServer::~HttpServer() {
  state_->draining = state_->abandoned = true;
  state_->stop_listening();
}

void HttpServer::set_default_headers(HttpHeaders headers) { state_->default_headers = std::move(headers); }

void HttpServer::use_tls(TlsEndpoint* endpoint) { state_->endpoint = endpoint; }

void HttpServer::use_compressor(OffloadPool* pool) { state_->compressor = pool; }

Result<BoundAddress> HttpServer::listen(const ListenAddress& address) {
  auto listener = Listener::open(state_->loop, address);
  if (!listener) return listener.error();
  TlsEndpoint* const endpoint = address.is_unix() ? nullptr : state_->endpoint;
  state_->seats.push_back(std::make_unique<ListenerSeat>(state_->loop, std::move(*listener), endpoint));
  ListenerSeat* const seat = state_->seats.back().get();
  state_->loop.spawn(State::accept_all(state_, seat), "accept");
  return seat->listener.bound();
}

void HttpServer::announce_end() { state_->leaving = true; }

void HttpServer::retract_end() {
  CHECK(!state_->draining);
  state_->leaving = false;
}

void HttpServer::stop_accepting() {
  announce_end();
  state_->stop_listening();
}

void HttpServer::drain(TimePoint deadline, std::function<void()> done) {
  State& state = *state_;
  stop_accepting();
  state.draining = true;
  state.on_drained = std::move(done);
  for (HttpConnection* connection : state.connections) connection->close_when_idle();
  if (state.connections.empty()) return state.report_drained();
  state.drain_timer.expires_at(deadline);
  state.drain_timer.async_wait([weak = std::weak_ptr<State>(state_)](SystemError error) {
    const auto self = weak.lock();
    if (error || !self) return;
    log_warning("closing connections that did not finish in time", {{"connections", self->connections.size()}});
    for (HttpConnection* connection : self->connections) connection->close();
  });
}

bool HttpServer::draining() const { return state_->draining; }
std::size_t HttpServer::connections() const { return state_->connections.size(); }
std::size_t HttpServer::exchanges() const { return state_->exchanges; }

}  // namespace chasqui::net
