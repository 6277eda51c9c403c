// `chasqui rpc-server`: lends this machine's devices to a server with --rpc, through ggml's RPC backend. The main
// thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace chasqui {

// Flags as of llama.cpp's rpc-server.
struct RpcServerConfig {
  std::string host = "127.0.0.1";
  std::int32_t port = 50052;
  std::vector<std::string> devices;
  std::int32_t threads = 0;  // 0: half of the cores
  bool cache = false;
  bool anywhere = false;  // the address may be one of a public network, or of all
};

CLI::App* add_rpc_server_command(CLI::App& app, RpcServerConfig& config);

// Until a signal ends it; otherwise the exit code.
int run_rpc_server(const RpcServerConfig& config);

}  // namespace chasqui
