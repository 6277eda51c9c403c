// One POST to another HTTP server, the only connection that Chasqui opens by itself: a collector of spans that
// its operator has named. HTTP/1.1, plain or in TLS, a connection for each request, no redirects. Loop thread, which
// it never blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "net/event_loop.h"
#include "net/tls_trust.h"

namespace chasqui::net {

struct HttpTarget {
  std::string host;  // a name or an address
  std::uint16_t port = 80;
  std::string path = "/";
  bool tls = false;
};

// http://HOST[:PORT][/PATH] or https://…; IPv6 addresses in brackets. Errors say what is wrong with it.
Result<HttpTarget> read_http_url(std::string_view url);

// The status of the answer, whose body is not read. An error when there was none within `limit`, or when a TLS server
// cannot prove that it is the host. `trust` is needed for those; it outlives the call.
Awaitable<Result<int>> http_post(EventLoop& loop, HttpTarget target, TlsTrust* trust, std::string content_type,
                                 std::string body, Duration limit);

}  // namespace chasqui::net
