// One socket type for TCP and Unix streams, so that everything above is compiled once, and the few questions that
// are asked of a socket below Asio. Loop thread only.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include "base/clock.h"
#include "net/awaitable.h"
#include "net/http_request.h"

namespace chasqui::net {

using StreamSocket = asio::basic_stream_socket<asio::generic::stream_protocol, Executor>;

// Who is at the other end; for Unix sockets with the credentials that the kernel vouches for.
HttpPeer describe_peer(StreamSocket& socket);

// Has the other end closed or reset behind bytes that are still waiting to be read? False where the system cannot say.
bool closed_behind_bytes(StreamSocket& socket);

// Has the other end of a Unix socket been closed altogether, and not only its sending half?
bool hung_up(StreamSocket& socket);

// From now on the socket is ready to be read when this much is there, or when nothing more will come.
void wake_at(StreamSocket& socket, std::size_t bytes);

// TCP: small writes go out at once; bytes that the peer does not acknowledge for `timeout` reset the connection, so a
// peer that vanished is noticed; and the kernel takes `unsent_bytes` beyond the peer's window instead of megabytes, so
// writing to a peer that does not read waits soon. Unix sockets are like that by nature.
void configure_stream(StreamSocket& socket, Duration timeout, std::size_t unsent_bytes);

}  // namespace chasqui::net
