// ggml's RPC backend: devices of other machines beside those of this one, and the server that lends its own. What ggml
// keeps of it is the process's; it connects without a deadline and ends the process where a server is lost, so callers
// greet a server first (net/rpc_endpoint), and say here what is to happen then. Added at start, on the main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace chasqui {

struct RpcDevice {
  std::string name;  // "RPC0", as --device and --tensor-split count it
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

// Of the protocol that is spoken here: "7.0.0"; and whether a server with that version is understood.
std::string rpc_version();
bool speaks_rpc(int major, int minor);

// Adds the devices of the server at HOST:PORT to those that libllama knows. Once for each.
// REQUIRES: it was greeted
Result<std::vector<RpcDevice>> add_rpc_server(const std::string& endpoint);

// A server was lost, or said what ggml does not understand. Called once, on the thread that found out, which then
// stands still for ever, as does each that waits for that server: the process has to end.
class RpcFailure {
 public:
  virtual ~RpcFailure() = default;
  virtual void rpc_failed() = 0;
};
// From now on; returns the one before. Null, as at first: ggml ends the process. Any thread.
RpcFailure* on_rpc_failure(RpcFailure* failure);

// What a server lends, and where.
struct RpcService {
  std::string endpoint;              // ADDRESS:PORT; port 0: any
  std::vector<std::string> devices;  // by name; none: all but the CPU, or else the CPU
  std::string cache;                 // folder for large tensors, by their hash, so that they are sent once; empty: none
  std::int32_t threads = 1;          // of the CPU
};
// Serves one client after the other, for ever; returns where it cannot.
Error serve_rpc(const RpcService& service);

}  // namespace chasqui
