#include "net/rpc_endpoint.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <span>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace chasqui::net {
namespace {

// The greeting: a command, the size of what follows, and what transports the client knows; the answer is a size,
// the version and the server's transports. Zeros are TCP alone.
constexpr std::byte kHello{14};
constexpr std::uint64_t kTransports = 24;
constexpr std::uint64_t kAnswer = 4 + kTransports;

// A connection that is dead is noticed after idle + count * interval seconds of silence.
constexpr int kIdleSeconds = 2;
constexpr int kIntervalSeconds = 1;
constexpr int kProbes = 3;

Error bad_endpoint(std::string_view text, const std::string& why) {
  return invalid_field("--rpc", "--rpc: \"" + std::string(text) + "\" " + why);
}

Error unreachable(const RpcEndpoint& endpoint, const std::string& why) {
  return Error{ErrorCode::unavailable, "--rpc: the RPC server " + endpoint.name + ' ' + why, "--rpc"};
}

sockaddr_in socket_address(const RpcEndpoint& endpoint) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(endpoint.address);
  out.sin_port = htons(endpoint.port);
  return out;
}

Result<std::uint32_t> resolve(const std::string& host, std::string_view text) {
  addrinfo wish{};
  wish.ai_family = AF_INET;
  wish.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), nullptr, &wish, &found); failed != 0) {
    return Error{ErrorCode::unavailable,
                 "--rpc: the host of \"" + std::string(text) + "\" has no IPv4 address: " + ::gai_strerror(failed),
                 "--rpc"};
  }
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof address);
  ::freeaddrinfo(found);
  return ntohl(address.sin_addr.s_addr);
}

Result<RpcEndpoint> read_endpoint(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view digits = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  const bool whole = error == std::errc() && end == digits.data() + digits.size() && port > 0 && port <= 65535;
  if (colon == 0 || !whole) {
    return bad_endpoint(text, "is no HOST:PORT: a name or an IPv4 address, a colon, and a port from 1 to 65535");
  }
  const auto address = resolve(std::string(text.substr(0, colon)), text);
  if (!address) return address.error();
  return RpcEndpoint{std::string(text), *address, static_cast<std::uint16_t>(port)};
}

// A socket that gives up at a time.
class PatientSocket {
 public:
  explicit PatientSocket(Duration patience)
      : until_(clock_.now() + patience), fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (fd_ < 0) return;
    ::fcntl(fd_, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd_, F_SETFL, O_NONBLOCK);
  }
  ~PatientSocket() {
    if (fd_ >= 0) ::close(fd_);
  }
  PatientSocket(const PatientSocket&) = delete;
  PatientSocket& operator=(const PatientSocket&) = delete;

  // Each returns 0, or an errno: ETIMEDOUT is the end of patience.
  int connect(const RpcEndpoint& endpoint) {
    if (fd_ < 0) return errno;
    const sockaddr_in to = socket_address(endpoint);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    if (const int failed = wait(POLLOUT); failed != 0) return failed;
    int failed = 0;
    socklen_t size = sizeof failed;
    return ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &failed, &size) == 0 ? failed : errno;
  }

  int send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      if (sent >= 0 || errno == EINTR) continue;
      if (errno != EAGAIN) return errno;
      if (const int failed = wait(POLLOUT); failed != 0) return failed;
    }
    return 0;
  }

  // ECONNRESET also where the other end has closed.
  int receive(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      if (const int failed = wait(POLLIN); failed != 0) return failed;
      const ssize_t got = ::recv(fd_, bytes.data(), bytes.size(), 0);
      if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
      if (got == 0) return ECONNRESET;
      if (got < 0 && errno != EAGAIN && errno != EINTR) return errno;
    }
    return 0;
  }

 private:
  int wait(short events) {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - clock_.now());
      if (left.count() <= 0) return ETIMEDOUT;
      pollfd door{fd_, events, 0};
      const int ready = ::poll(&door, 1, static_cast<int>(left.count()));
      if (ready > 0) return 0;
      if (ready < 0 && errno != EINTR) return errno;
    }
  }

  const RealClock clock_;
  const TimePoint until_;
  const int fd_;
};

void notice_loss(int fd) {
  const auto set = [fd](int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
#ifdef __linux__
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kIntervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
#endif
}

bool stands(int fd) {
#ifdef __linux__
  tcp_info state{};
  socklen_t size = sizeof state;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &state, &size) == 0 && state.tcpi_state == TCP_ESTABLISHED;
#else
  char byte = 0;
  const ssize_t got = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && errno == EAGAIN);
#endif
}

// Open descriptors of this process, sockets or not.
std::vector<int> descriptors() {
  std::vector<int> out;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/dev/fd", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (fd >= 0) out.push_back(fd);
  }
  return out;
}

template <class Ask>
std::optional<sockaddr_in> address_of(int fd, Ask ask) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (ask(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0 || storage.ss_family != AF_INET) return std::nullopt;
  sockaddr_in out{};
  std::memcpy(&out, &storage, sizeof out);
  return out;
}

std::vector<int> connections_to(const RpcEndpoint& endpoint) {
  std::vector<int> out = descriptors();
  const sockaddr_in wanted = socket_address(endpoint);
  std::erase_if(out, [&wanted](int fd) {
    const auto peer = address_of(fd, ::getpeername);
    return !peer || peer->sin_addr.s_addr != wanted.sin_addr.s_addr || peer->sin_port != wanted.sin_port;
  });
  return out;
}

}  // namespace

Result<std::vector<RpcEndpoint>> read_rpc_endpoints(std::string_view list) {
  std::vector<RpcEndpoint> out;
  for (bool last = false; !last;) {
    const std::size_t comma = list.find(',');
    last = comma == std::string_view::npos;
    auto endpoint = read_endpoint(list.substr(0, comma));
    if (!endpoint) return endpoint.error();
    if (std::ranges::find(out, endpoint->name, &RpcEndpoint::name) == out.end()) out.push_back(std::move(*endpoint));
    if (!last) list.remove_prefix(comma + 1);
  }
  return out;
}

std::optional<std::uint32_t> read_ipv4(const std::string& text) {
  in_addr address{};
  if (::inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

bool is_private_address(std::uint32_t address) {
  struct Net {
    std::uint32_t address;
    int bits;
  };
  constexpr Net kNets[] = {
      {0x7f000000, 8}, {0x0a000000, 8}, {0xac100000, 12}, {0xc0a80000, 16}, {0xa9fe0000, 16},
  };
  return std::ranges::any_of(
      kNets, [address](const Net& net) { return (address ^ net.address) >> (32 - net.bits) == 0; });
}

Result<RpcVersion> greet_rpc_server(const RpcEndpoint& endpoint, Duration patience) {
  const auto in_time = std::to_string(std::chrono::ceil<milliseconds>(patience).count()) + " ms";
  PatientSocket socket(patience);
  if (const int failed = socket.connect(endpoint); failed != 0) {
    const std::string why = failed == ETIMEDOUT ? "no answer within " + in_time : std::strerror(failed);
    return unreachable(endpoint, "cannot be reached: " + why);
  }
  std::array<std::byte, 1 + sizeof kTransports + kTransports> hello{kHello};
  std::memcpy(&hello[1], &kTransports, sizeof kTransports);
  std::array<std::byte, sizeof kAnswer + kAnswer> answer{};
  int failed = socket.send(hello);
  if (failed == 0) failed = socket.receive(answer);
  if (failed == ETIMEDOUT) {
    return unreachable(endpoint, "does not answer within " + in_time +
                                     ": it is busy, or has another client (it has one at a time)");
  }
  if (failed != 0) {
    return unreachable(endpoint, "hangs up when it is greeted: it speaks an older protocol, or is something else (" +
                                     std::string(std::strerror(failed)) + ")");
  }
  std::uint64_t size = 0;
  std::memcpy(&size, answer.data(), sizeof size);
  if (size != kAnswer) return bad_endpoint(endpoint.name, "is no RPC server: it does not answer as one");
  const auto number = [&answer](std::size_t at) { return std::to_integer<int>(answer[sizeof size + at]); };
  return RpcVersion{number(0), number(1), number(2)};
}

bool has_connection(const RpcEndpoint& endpoint) {
  return std::ranges::any_of(connections_to(endpoint), stands);
}

bool has_dead_connection(const RpcEndpoint& endpoint) {
  return !std::ranges::all_of(connections_to(endpoint), stands);
}

bool watch_connections(const RpcEndpoint& endpoint) {
  const std::vector<int> connections = connections_to(endpoint);
  std::ranges::for_each(connections, notice_loss);
  return !connections.empty();
}

std::optional<RpcEndpoint> watch_listening_socket() {
  for (const int fd : descriptors()) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    const auto address = address_of(fd, ::getsockname);
    if (!address) continue;
    notice_loss(fd);
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    const std::uint16_t port = ntohs(address->sin_port);
    return RpcEndpoint{std::string(text) + ':' + std::to_string(port), ntohl(address->sin_addr.s_addr), port};
  }
  return std::nullopt;
}

}  // namespace chasqui::net
