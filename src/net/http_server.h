// The HTTP/1.1 server: listeners, connections, keep-alive, drain. Owned by the application; loop thread only. Destroy
// it after the loop has stopped and before the loop itself; handlers must have ended by then (drain() sees to it).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "net/event_loop.h"
#include "net/http_headers.h"
#include "net/http_limits.h"
#include "net/listener.h"
#include "net/router.h"
#include "net/tls_endpoint.h"

namespace chasqui::net {

class OffloadPool;

class HttpServer {
 public:
  // `router` must outlive the server.
  HttpServer(EventLoop& loop, const Router& router, HttpLimits limits);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Go on every response. Before the first listen().
  void set_default_headers(HttpHeaders headers);

  // TCP listeners that are opened from now on speak TLS; Unix sockets never do. The endpoint outlives the loop's run.
  void use_tls(TlsEndpoint* endpoint);

  // Compresses answers for clients that ask for it; the pool takes the large ones, and outlives the loop's run.
  void use_compressor(OffloadPool* pool);

  // Binds and starts to accept; may be called several times. The value says what was bound, with the actual port.
  Result<BoundAddress> listen(const ListenAddress& address);

  // Every answer is the last of its connection from now on; new connections are still accepted.
  void announce_end();
  // Connections are kept again. REQUIRES: it still accepts
  void retract_end();
  // Accepts no new connection. Open connections may still send one request. For sockets that others keep open: who has
  // connected in time is served, everybody later waits for the next process.
  void stop_accepting();
  // Stops accepting, closes idle connections, lets running exchanges finish until `deadline` (announcing
  // `Connection: close`), closes what is left then, and calls `done` when the last connection has ended.
  void drain(TimePoint deadline, std::function<void()> done);
  bool draining() const;

  std::size_t connections() const;
  std::size_t exchanges() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace chasqui::net
