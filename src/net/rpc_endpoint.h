// Servers of ggml's RPC backend as the network sees them. ggml connects without a deadline, and ends the process when a
// server does not answer: so an endpoint is read, resolved and greeted here before. Also this process's connections to
// them, which are ggml's sockets. Values and free functions; at start, and on threads that load models. Blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace chasqui::net {

struct RpcEndpoint {
  std::string name;           // HOST:PORT as it was written, which is how ggml knows it
  std::uint32_t address = 0;  // IPv4: the backend knows no other
  std::uint16_t port = 0;
};

// Of the protocol.
struct RpcVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
};

// Commas between them; one that comes twice counts once. Errors quote what is no HOST:PORT (`invalid_request`), or
// cannot be resolved (`unavailable`).
Result<std::vector<RpcEndpoint>> read_rpc_endpoints(std::string_view list);
// Numbers only. Nothing: it is no address.
std::optional<std::uint32_t> read_ipv4(const std::string& text);
// Loopback, private (RFC 1918) and link-local: what machines elsewhere cannot reach.
bool is_private_address(std::uint32_t address);

// Connects, asks for the version and hangs up. A server has one client at a time, so one that is in use does not
// answer. Errors are `unavailable`, but for what is no such server.
Result<RpcVersion> greet_rpc_server(const RpcEndpoint& endpoint, Duration patience);

// Whether this process has a connection to it that stands, or one that the other end has closed.
bool has_connection(const RpcEndpoint& endpoint);
bool has_dead_connection(const RpcEndpoint& endpoint);
// Its connections to it find out within seconds that the other machine has gone, while they wait for an answer. Returns
// whether there is one.
bool watch_connections(const RpcEndpoint& endpoint);
// The socket of this process that listens, whose connections shall find out so, too. Nothing: there is none yet.
std::optional<RpcEndpoint> watch_listening_socket();

}  // namespace chasqui::net
