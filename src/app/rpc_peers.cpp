#include "app/rpc_peers.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <deque>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "app/backends.h"
#include "app/load_trial.h"
#include "base/flag.h"
#include "base/log.h"
#include "base/log_sink.h"
#include "base/thread_name.h"
#include "net/rpc_endpoint.h"

namespace chasqui {
namespace {

constexpr Duration kPeerPatience = seconds(1);  // with a server that is asked
constexpr int kLookForPeersEveryMs = 500;           // whether one has gone

struct Peer {
  net::RpcEndpoint endpoint;
  std::vector<RpcDevice> devices;
  Flag used;  // weights were loaded, and some are there
};

std::deque<Peer>& peers() {
  static std::deque<Peer> all;
  return all;
}

// Those that weights are on and whose connection does not stand any more. All where each does: one of them has said
// what ggml does not understand.
std::string lost_peers() {
  std::string lost;
  std::string all;
  for (const Peer& peer : peers()) {
    const auto add = [&peer](std::string& names) { names += (names.empty() ? "" : ", ") + peer.endpoint.name; };
    add(all);
    const bool stands = net::has_connection(peer.endpoint) && !net::has_dead_connection(peer.endpoint);
    if (peer.used.raised() && !stands) add(lost);
  }
  return lost.empty() ? all : lost;
}

// As long as there is no server to tell.
class EndsProcess final : public RpcFailure {
 public:
  void rpc_failed() override { end_without(lost_peers()); }
};

Result<void> greet(const net::RpcEndpoint& endpoint) {
  const auto version = net::greet_rpc_server(endpoint, kPeerPatience);
  if (!version) return version.error();
  if (speaks_rpc(version->major, version->minor)) return {};
  const std::string theirs =
      std::to_string(version->major) + '.' + std::to_string(version->minor) + '.' + std::to_string(version->patch);
  return invalid_field("--rpc", "--rpc: the RPC server " + endpoint.name + " speaks version " + theirs +
                                    " of the protocol, and this server " + rpc_version() +
                                    ": both need the same llama.cpp, as chasqui rpc-server of this build has it");
}

Result<void> add(const net::RpcEndpoint& endpoint, bool anywhere) {
  if (std::ranges::any_of(peers(), [&](const Peer& peer) { return peer.endpoint.name == endpoint.name; })) return {};
  if (!anywhere && !net::is_private_address(endpoint.address)) {
    return invalid_field("--rpc", "--rpc: " + endpoint.name + " is no address of a private network, and " +
                                      kRpcWarning + ": use a private network, or say --rpc-public");
  }
  if (auto there = greet(endpoint); !there) return there;
  static EndsProcess ends_process;
  if (peers().empty()) {
    on_rpc_failure(&ends_process);
    std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): ggml writes to sockets that may be closed
  }
  Peer& peer = peers().emplace_back();
  peer.endpoint = endpoint;
  auto devices = add_rpc_server(endpoint.name);
  if (!devices) return devices.error();
  peer.devices = std::move(*devices);
  return {};
}

// Before weights are loaded. One that this process is connected to would not answer another connection.
Result<void> still_there() {
  for (const Peer& peer : peers()) {
    if (net::has_connection(peer.endpoint)) continue;
    if (auto there = greet(peer.endpoint); !there) return there;
  }
  return {};
}

void watch_used() {
  for (Peer& peer : peers()) {
    if (net::watch_connections(peer.endpoint)) peer.used.raise();
  }
}

}  // namespace

bool any_network(const std::vector<std::string>& arguments, const char* variable) {
  if (std::ranges::find(arguments, "--rpc-public") != arguments.end()) return true;
  const std::string_view said = variable == nullptr ? "false" : variable;
  return said == "1" || said == "true" || said == "on";
}

Result<void> find_devices(LlamaOptions& options, bool anywhere) {
  backends();
  if (options.rpc_servers().empty()) return {};
  if (is_load_trial()) {  // the server that tries has the connections
    options.forget_devices();
    return {};
  }
  const auto endpoints = net::read_rpc_endpoints(options.rpc_servers());
  if (!endpoints) return endpoints.error();
  for (const net::RpcEndpoint& endpoint : *endpoints) {
    if (auto added = add(endpoint, anywhere); !added) return added;
  }
  return {};
}

std::vector<RpcPeer> rpc_peers() {
  std::vector<RpcPeer> out;
  for (const Peer& peer : peers()) out.push_back({peer.endpoint.name, peer.devices});
  return out;
}

PeerMemory memory_of_peers() {
  PeerMemory sum;
  for (const Peer& peer : peers()) {
    for (const RpcDevice& device : peer.devices) {
      sum.free_bytes += device.free_bytes;
      sum.total_bytes += device.total_bytes;
    }
  }
  return sum;
}

void follow_peers(WeightsOptions& options) {
  if (peers().empty() || options.on_trial) return;
  options.before = still_there;
  options.after = watch_used;
}

void end_without(const std::string& peers) {
  log_error("the process ends because an RPC server is lost", {{"server", peers}});
  flush_log();
  std::fprintf(stderr, "chasqui: --rpc: the RPC server %s is lost, which holds a part of the model\n", peers.c_str());
  std::fflush(nullptr);
  ::_exit(kPeerLostExit);
}

PeerLoss::PeerLoss(net::EventLoop& loop, std::function<void(const std::string& peers)> lost)
    : loop_(loop), lost_(std::move(lost)), before_(on_rpc_failure(this)) {
  CHECK(::pipe(stop_) == 0, "a pipe to end a thread");
  for (const int fd : stop_) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  thread_ = std::thread([this] { look(); });
}

PeerLoss::~PeerLoss() {
  [[maybe_unused]] const ssize_t written = ::write(stop_[1], "e", 1);
  thread_.join();
  for (const int fd : stop_) ::close(fd);
  on_rpc_failure(before_);
}

// ggml reads what a server says only while it waits for an answer.
void PeerLoss::look() {
  name_this_thread("rpc-watch");
  pollfd door{stop_[0], POLLIN, 0};
  while (::poll(&door, 1, kLookForPeersEveryMs) == 0) {
    const auto closed = [](const Peer& peer) {
      return peer.used.raised() && net::has_dead_connection(peer.endpoint);
    };
    if (std::ranges::none_of(peers(), closed)) continue;
    rpc_failed();
    return;
  }
}

void PeerLoss::rpc_failed() {
  loop_.post([this, names = lost_peers()] { lost_(names); });
}

}  // namespace chasqui
