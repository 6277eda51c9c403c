#include "app/listeners.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace chasqui {
namespace {

constexpr int kFirstInherited = 3;  // as systemd hands them over

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

long number_in(const char* name) {
  const std::string text = environment(name);
  long value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  return end.ec == std::errc{} && end.ptr == text.data() + text.size() ? value : 0;
}

// Those that are meant for this process, each with its name.
Result<Listeners> inherited_listeners() {
  Listeners out;
  if (number_in("LISTEN_PID") != ::getpid()) return out;
  const long count = number_in("LISTEN_FDS");
  std::string names = environment("LISTEN_FDNAMES");
  for (long i = 0; i < count; ++i) {
    auto address = net::ListenAddress::inherited(kFirstInherited + static_cast<int>(i));
    if (!address) return address.error();
    const std::string name = names.substr(0, names.find(':'));
    names.erase(0, std::min(names.size(), name.size() + 1));
    (name == "frames" ? out.frames : out.http).push_back(std::move(*address));
  }
  out.stay = count > 0;
  // The variables are not for processes that we start.
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  if (out.frames.size() > 1) return invalid_field("LISTEN_FDNAMES", "LISTEN_FDNAMES names more than one socket frames");
  return out;
}

constexpr std::string_view kPrinted = "unix:";  // before the paths of Unix sockets, where the server names them

// Of a Unix socket. Empty: it is no path.
std::string path_in(const std::string& text) {
  if (text.starts_with(kPrinted)) return text.substr(kPrinted.size());
  return text.find('/') != std::string::npos || text.ends_with(".sock") ? text : "";
}

// A server that strangers can reach without a key is a mistake more often than a wish.
Result<void> check_address(const ServeConfig& config, const net::ListenAddress& address) {
  if (!address.is_valid()) {
    return invalid_field(
        "--host", "--host " + address.host + " must be an IPv4 or IPv6 address, localhost, or a path ending in .sock");
  }
  const bool keys = !config.api_keys.empty() || !config.api_key_file.empty();
  if (keys || config.no_auth || address.is_loopback()) return {};
  return invalid_field("--host", "--host " + address.host +
                                     " can be reached from other machines: set --api-key, or --no-auth if everybody "
                                     "who can reach it may use it");
}

Result<void> read_operators_addresses(const ServeConfig& config, Listeners& out) {
  for (const std::string& text : config.admin_listen) {
    auto address = read_address("--admin-listen", text, config.socket_mode);
    if (!address) return address.error();
    if (!config.admin_public && !address->is_loopback()) {
      return invalid_field("--admin-listen",
                           "--admin-listen " + text +
                               " can be reached from other machines: give --admin-public, too, if everybody who can "
                               "reach it may read the metrics");
    }
    out.admin.push_back(std::move(*address));
  }
  if (config.agent_check.empty()) return {};
  auto address = read_address("--agent-check", config.agent_check, config.socket_mode);
  if (!address) return address.error();
  out.agent.push_back(std::move(*address));
  return {};
}

bool any_unix(const std::vector<net::ListenAddress>& addresses) {
  for (const net::ListenAddress& address : addresses) {
    if (address.is_unix()) return true;
  }
  return false;
}

}  // namespace

std::vector<net::ListenAddress> host_addresses(const ServeConfig& config) {
  std::vector<net::ListenAddress> out;
  std::string_view rest = config.host;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const std::size_t first = word.find_first_not_of(' ');
    if (first == std::string_view::npos) continue;
    const std::string host(word.substr(first, word.find_last_not_of(' ') - first + 1));
    const bool path = host.ends_with(".sock") || host.starts_with(kPrinted);
    out.push_back(path ? net::ListenAddress::unix_socket(path_in(host), config.socket_mode)
                       : net::ListenAddress::tcp(host, config.port));
  }
  const bool one = std::ranges::count_if(out, [](const auto& address) { return !address.is_unix(); }) == 1;
  for (net::ListenAddress& address : out) address.v6_only = !one;
  return out;
}

Result<net::ListenAddress> read_address(const std::string& flag, const std::string& text, std::uint32_t socket_mode) {
  if (const std::string path = path_in(text); !path.empty()) return net::ListenAddress::unix_socket(path, socket_mode);
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, std::min(colon, text.size()));
  const bool bracketed = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const std::string_view digits = colon == std::string::npos ? "" : std::string_view(text).substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  auto address = net::ListenAddress::tcp(host, port);
  const bool whole = !digits.empty() && failed == std::errc{} && end == digits.data() + digits.size();
  if (!whole || !address.is_valid() || bracketed != (host.find(':') != std::string::npos)) {
    return invalid_field(flag, flag + " " + text +
                                   " must be an address and a port such as 127.0.0.1:9090 or [::1]:9090, or a path of "
                                   "a Unix socket");
  }
  return address;
}

Result<Listeners> listeners_of(const ServeConfig& config) {
  auto listeners = inherited_listeners();
  if (!listeners) return listeners.error();
  const bool unix_given = any_unix(listeners->http);
  if (listeners->http.empty()) listeners->http = host_addresses(config);
  if (!unix_given && !config.unix_socket.empty()) {
    listeners->http.push_back(net::ListenAddress::unix_socket(config.unix_socket, config.socket_mode));
  }
  if (listeners->frames.empty() && !config.socket.empty()) {
    listeners->frames.push_back(net::ListenAddress::unix_socket(config.socket, config.socket_mode));
  }
  if (auto good = read_operators_addresses(config, *listeners); !good) return good.error();
  if (auto good = check_origins(config); !good) return good.error();
  for (const net::ListenAddress& address : listeners->http) {
    if (auto good = check_address(config, address); !good) return good.error();
  }
  return listeners;
}

Result<void> check_listeners(const Listeners& listeners) {
  net::ListeningCheck all;
  const auto check = [&all](const std::vector<net::ListenAddress>& addresses, const std::string& flag) -> Result<void> {
    for (const net::ListenAddress& address : addresses) {
      auto free = all.add(address);
      if (free) continue;
      Error error = free.error();
      if (error.code == ErrorCode::conflict && !address.is_unix()) {
        error.message +=
            " Another program listens there, or another flag names the same address: stop it, or choose "
            "another port with " +
            flag;
      }
      return error;
    }
    return {};
  };
  for (const auto* addresses : {&listeners.http, &listeners.frames}) {
    if (auto free = check(*addresses, "--port (0: any free one)."); !free) return free;
  }
  if (auto free = check(listeners.admin, "--admin-listen (0: any free one)."); !free) return free;
  return check(listeners.agent, "--agent-check (0: any free one).");
}

Result<std::string> open_listeners(const Doors& doors, const Listeners& listeners, bool tls) {
  std::string url;
  std::string said;  // when all are open, and not when one of them fails
  for (const net::ListenAddress& address : listeners.http) {
    auto bound = doors.http.listen(address);
    if (!bound) return bound.error();
    const std::string text = address.is_unix() ? bound->text : (tls ? "https://" : "http://") + bound->text;
    said += "listening on " + text + '\n';
    if (!address.is_unix() && url.empty()) url = text;
  }
  for (const net::ListenAddress& address : listeners.frames) {
    auto bound = doors.frames.listen(address);
    if (!bound) return bound.error();
    said += "listening on " + bound->text + " for frames\n";
  }
  for (const net::ListenAddress& address : listeners.admin) {
    auto bound = doors.admin.listen(address);
    if (!bound) return bound.error();
    said += "listening on " + (address.is_unix() ? bound->text : "http://" + bound->text) + " for operators\n";
  }
  for (const net::ListenAddress& address : listeners.agent) {
    auto bound = doors.agent.listen(address);
    if (!bound) return bound.error();
    said += "listening on " + bound->text + " for agent checks\n";
  }
  std::fputs(said.c_str(), stdout);
  return url;
}

}  // namespace chasqui
