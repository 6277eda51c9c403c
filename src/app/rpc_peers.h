// Other machines that compute for this server (`--rpc`): each is asked in bounded time before ggml connects to it, and
// a loss ends what it computed with a word about which machine it was. They are the process's, as in ggml: added on the
// main thread at start, constant afterwards.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "model/llama_options.h"
#include "model/llama_rpc.h"
#include "model/llama_weights.h"
#include "net/event_loop.h"

namespace chasqui {

// Of a process that has lost one, or waits for it under a supervisor: sysexits' word for what may pass.
constexpr int kPeerLostExit = 75;

// Said by both ends.
inline constexpr const char* kRpcWarning =
    "the RPC protocol has neither authentication nor encryption, and whatever reaches one of its servers can misuse it";

// Whether --rpc-public is among the arguments, or its variable says so (null: it is not set): that is needed before
// options are read.
bool any_network(const std::vector<std::string>& arguments, const char* variable);
// Those of backends beside the binary, and of --rpc, which it adds, so that other flags can name them. Errors of code
// `unavailable` may pass: a server does not answer. `anywhere`: also on addresses of other networks.
Result<void> find_devices(LlamaOptions& options, bool anywhere);

struct RpcPeer {
  std::string endpoint;  // HOST:PORT
  std::vector<RpcDevice> devices;
};
std::vector<RpcPeer> rpc_peers();
// Of all their devices, when they were added.
struct PeerMemory {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};
PeerMemory memory_of_peers();

// Weights that are loaded find them there, or an error, and notice within seconds that one has gone.
void follow_peers(WeightsOptions& options);

// The last line of a process that cannot go on without them.
[[noreturn]] void end_without(const std::string& peers);

// While it lives, a loss is told on the loop instead of ending the process at once; also of a machine that goes while
// there is nothing to compute. Owned by the Server.
class PeerLoss final : private RpcFailure {
 public:
  // `lost` gets the names of those that have gone, at least once. The loop outlives this.
  PeerLoss(net::EventLoop& loop, std::function<void(const std::string& peers)> lost);
  ~PeerLoss() override;
  PeerLoss(const PeerLoss&) = delete;
  PeerLoss& operator=(const PeerLoss&) = delete;

 private:
  void rpc_failed() override;
  void look();

  net::EventLoop& loop_;
  const std::function<void(const std::string& peers)> lost_;
  RpcFailure* before_ = nullptr;
  int stop_[2] = {-1, -1};  // a pipe; what is written ends the thread
  std::thread thread_;
};

}  // namespace chasqui
