#include "net/listener.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <boost/asio/error.hpp>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

namespace chasqui::net {
namespace {

constexpr Duration kAcceptPause = milliseconds(50);
constexpr int kBacklog = 4096;

// A descriptor that closes itself unless it is handed on.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Error cannot_listen(const std::string& where, int error) {
  const ErrorCode code = error == EADDRINUSE ? ErrorCode::conflict : ErrorCode::unavailable;
  return Error{code, "Cannot listen on " + where + ": " + std::generic_category().message(error) + ".", {}};
}

std::optional<SocketAddress> ip_address(const std::string& host, std::uint16_t port) {
  const std::string literal = host == "localhost" ? "127.0.0.1" : host;
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  if (::inet_pton(AF_INET, literal.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.size = sizeof v4;
    return address;
  }
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (::inet_pton(AF_INET6, literal.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.size = sizeof v6;
    return address;
  }
  return std::nullopt;
}

std::uint16_t bound_port(int fd) {
  SocketAddress address;
  address.size = sizeof address.storage;
  if (::getsockname(fd, address.get(), &address.size) != 0) return 0;
  if (address.storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

// Removes the socket file of a server that died. One that answers, or a file that is no socket, stays.
Result<void> remove_stale(const std::string& path, SocketAddress& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) return cannot_listen(path + " (there is a file that is no socket)", EEXIST);
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM, 0));
  if (probe.get() < 0) return cannot_listen(path, errno);
  ::fcntl(probe.get(), F_SETFL, O_NONBLOCK);  // a server with a full backlog is alive, too
  if (::connect(probe.get(), address.get(), address.size) == 0 || errno != ECONNREFUSED) {
    return cannot_listen(path + " (another server answers there)", EADDRINUSE);
  }
  if (::unlink(path.c_str()) != 0) return cannot_listen(path, errno);
  return {};
}

Result<int> open_unix(const ListenAddress& where) {
  SocketAddress address;
  auto& name = reinterpret_cast<sockaddr_un&>(address.storage);
  if (where.path.size() >= sizeof name.sun_path) return cannot_listen(where.path, ENAMETOOLONG);
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, where.path.c_str(), where.path.size() + 1);
  address.size = sizeof name;

  const Result<void> removed = remove_stale(where.path, address);
  if (!removed) return removed.error();
  Descriptor fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  if (fd.get() < 0 || ::bind(fd.get(), address.get(), address.size) != 0) return cannot_listen(where.path, errno);
  // No client can connect before listen(), so the mode is in force in time.
  if (::chmod(where.path.c_str(), where.mode) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    ::unlink(where.path.c_str());
    return cannot_listen(where.path, error);
  }
  return fd.release();
}

Result<int> open_tcp(const ListenAddress& where) {
  const std::string text = where.host + ":" + std::to_string(where.port);
  auto address = ip_address(where.host, where.port);
  if (!address) {
    return Error{ErrorCode::invalid_request, "The host must be an IPv4 or IPv6 address, or localhost.", "host"};
  }
  Descriptor fd(::socket(address->storage.ss_family, SOCK_STREAM, IPPROTO_TCP));
  if (fd.get() < 0) return cannot_listen(text, errno);
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  const int on = 1;
  const int v6_only = where.v6_only ? 1 : 0;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // `::` means every address, the IPv4 ones too where nothing else listens on them.
  if (where.host == "::") ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  if (::bind(fd.get(), address->get(), address->size) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return cannot_listen(text, errno);
  }
  return fd.release();
}

}  // namespace

ListenAddress ListenAddress::tcp(std::string host, std::uint16_t port) {
  ListenAddress address;
  address.host = std::move(host);
  address.port = port;
  return address;
}

ListenAddress ListenAddress::unix_socket(std::string path, mode_t mode) {
  ListenAddress address;
  address.path = std::move(path);
  address.mode = mode;
  return address;
}

bool ListenAddress::is_valid() const { return is_unix() || ip_address(host, port).has_value(); }

bool ListenAddress::is_loopback() const {
  if (is_unix() || host == "localhost" || host == "::1") return true;
  in_addr v4{};
  return ::inet_pton(AF_INET, host.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

Result<ListenAddress> ListenAddress::inherited(int descriptor) {
  const std::string name = "the descriptor " + std::to_string(descriptor);
  int listens = 0;
  socklen_t size = sizeof listens;
  SocketAddress bound;
  bound.size = sizeof bound.storage;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
      ::getsockname(descriptor, bound.get(), &bound.size) != 0) {
    return cannot_listen(name, errno);
  }
  if (listens == 0) return cannot_listen(name, EINVAL);
  ListenAddress out;
  out.descriptor = descriptor;
  char text[INET6_ADDRSTRLEN] = {};
  if (bound.storage.ss_family == AF_UNIX) {
    const auto& name_of_it = reinterpret_cast<const sockaddr_un&>(bound.storage);
    const std::size_t length = bound.size - offsetof(sockaddr_un, sun_path);
    out.path.assign(name_of_it.sun_path, ::strnlen(name_of_it.sun_path, length));
    if (out.path.empty()) out.path = "inherited";  // it has no name, or one that begins with a zero
    return out;
  }
  const bool v6 = bound.storage.ss_family == AF_INET6;
  if (!v6 && bound.storage.ss_family != AF_INET) return cannot_listen(name, EAFNOSUPPORT);
  const void* address = v6 ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(bound.storage).sin6_addr)
                           : &reinterpret_cast<const sockaddr_in&>(bound.storage).sin_addr;
  ::inet_ntop(bound.storage.ss_family, address, text, sizeof text);
  out.host = text;
  out.port = bound_port(descriptor);
  return out;
}

Result<int> open_listening(const ListenAddress& address) {
  if (address.descriptor >= 0) return address.descriptor;
  return address.is_unix() ? open_unix(address) : open_tcp(address);
}

Result<void> ListeningCheck::add(const ListenAddress& address) {
  if (address.descriptor >= 0) return {};
  const Result<int> fd = open_listening(address);
  if (!fd) return fd.error();
  open_.push_back({*fd, address.path});
  return {};
}

ListeningCheck::~ListeningCheck() {
  for (const Open& open : open_) {
    ::close(open.descriptor);
    if (!open.path.empty()) ::unlink(open.path.c_str());
  }
}

Result<Listener> Listener::open(EventLoop& loop, const ListenAddress& address) {
  const Result<int> fd = open_listening(address);
  if (!fd) return fd.error();
  ::fcntl(*fd, F_SETFD, FD_CLOEXEC);

  BoundAddress bound;
  if (address.is_unix()) {
    bound.text = "unix:" + address.path;
  } else {
    bound.port = bound_port(*fd);
    const bool v6 = address.host.find(':') != std::string::npos;
    bound.text = (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(bound.port);
  }
  const int family = address.is_unix() ? AF_UNIX : (address.host.find(':') != std::string::npos ? AF_INET6 : AF_INET);
  Acceptor acceptor(loop.executor());
  SystemError error;
  acceptor.assign(asio::generic::stream_protocol(family, address.is_unix() ? 0 : IPPROTO_TCP), *fd, error);
  if (error) {
    ::close(*fd);
    return cannot_listen(bound.text, error.value());
  }
  return Listener(loop, std::move(acceptor), std::move(bound), address);
}

Listener::Listener(EventLoop& loop, Acceptor acceptor, BoundAddress bound, const ListenAddress& address)
    : loop_(loop),
      acceptor_(std::move(acceptor)),
      bound_(std::move(bound)),
      is_unix_(address.is_unix()),
      unlink_path_(address.descriptor < 0 ? address.path : "") {}

Listener::Listener(Listener&& other) noexcept
    : loop_(other.loop_),
      acceptor_(std::move(other.acceptor_)),
      bound_(std::move(other.bound_)),
      is_unix_(other.is_unix_),
      unlink_path_(std::move(other.unlink_path_)) {
  other.unlink_path_.clear();
}

Listener::~Listener() { close(); }

void Listener::close() {
  if (!acceptor_.is_open()) return;
  SystemError ignored;
  acceptor_.close(ignored);
  if (!unlink_path_.empty()) ::unlink(unlink_path_.c_str());
}

Awaitable<std::optional<StreamSocket>> Listener::accept() {
  while (acceptor_.is_open()) {
    StreamSocket socket(loop_.executor());
    const auto outcome = co_await acceptor_.async_accept(socket, kAwait);
    const SystemError error = std::get<0>(outcome);
    loop_.turn_begins();
    if (!error) {
      ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
      co_return std::move(socket);
    }
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) break;
    loop_.metrics().accept_failures.add();
    if (error == asio::error::connection_aborted) continue;
    // Out of descriptors or memory: the connection stays in the queue, and asking at once again would spin.
    log_warning("cannot accept", {{"address", bound_.text}, {"error", error.message()}});
    Timer pause(loop_.executor(), kAcceptPause);
    co_await pause.async_wait(kAwait);
  }
  co_return std::nullopt;
}

}  // namespace chasqui::net
