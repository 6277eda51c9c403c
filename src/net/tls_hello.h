// The first record of a TLS connection, the client's hello, looked at without being read: until all of it is there a
// handshake has nothing to compute, and must not have a turn in the pool. Otherwise those who send two bytes and no
// more would stand in the line of everybody else, and each turn needs two threads to wake. Loop thread only.
#pragma once

#include <cstddef>
#include <string_view>

#include "net/awaitable.h"
#include "net/event_loop.h"
#include "net/socket.h"

namespace chasqui::net {

inline constexpr std::size_t kTlsRecordHeaderBytes = 5;

// The size of a record that begins like this, as far as can be told; what is no TLS is to be refused by what is there.
std::size_t tls_record_bytes(std::string_view begun);

// Ends when the hello is there as a whole, when bytes are there that are none, and when nothing more will come.
Awaitable<void> hello_arrives(EventLoop& loop, StreamSocket& socket);

}  // namespace chasqui::net
