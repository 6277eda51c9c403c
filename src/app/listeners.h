// Where the server listens: what the flags say, or sockets that the parent process has opened already
// (systemd's socket activation: LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES). Those take the place of the flags of their
// kind; one named "frames" speaks frames, all others HTTP. At start only.
#pragma once

#include <string>
#include <vector>

#include "app/config.h"
#include "base/error.h"
#include "net/agent_port.h"
#include "net/frame_server.h"
#include "net/http_server.h"
#include "net/listener.h"

namespace chasqui {

struct Listeners {
  std::vector<net::ListenAddress> http;
  std::vector<net::ListenAddress> frames;  // one at most
  bool stay = false;                       // they are others', who keep them open when we are gone
  std::vector<net::ListenAddress> admin;   // for operators; this process's own
  std::vector<net::ListenAddress> agent;   // for agent checks, one at most; likewise
};

// Of --host: addresses and paths of Unix sockets, behind commas.
std::vector<net::ListenAddress> host_addresses(const ServeConfig& config);

// Of --admin-listen and --agent-check: ADDRESS:PORT, [ADDRESS]:PORT, or a path, which has a slash, ends in
// .sock, or stands behind "unix:".
Result<net::ListenAddress> read_address(const std::string& flag, const std::string& text, std::uint32_t socket_mode);

// Nothing is opened yet. Errors: an address that is none, or one that strangers can reach without a key.
Result<Listeners> listeners_of(const ServeConfig& config);

// Whether all of them can be opened, asked before a model is loaded. The error says which flag moves the address.
Result<void> check_listeners(const Listeners& listeners);

// What speaks at each kind of them.
struct Doors {
  net::HttpServer& http;
  net::FrameServer& frames;
  net::HttpServer& admin;
  net::AgentPort& agent;
};

// Says on standard output what is open. The URL of the first HTTP door on TCP; empty where there is none.
Result<std::string> open_listeners(const Doors& doors, const Listeners& listeners, bool tls);

}  // namespace chasqui
