#include "net/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace chasqui::net {
namespace {

void describe_ip(const sockaddr_storage& address, HttpPeer& peer) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
    peer.address = "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(v6.sin6_port));
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
    peer.is_loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) || (mapped && v6.sin6_addr.s6_addr[12] == 127);
  } else {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    peer.address = std::string(text.data()) + ":" + std::to_string(ntohs(v4.sin_port));
    peer.is_loopback = ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
}

void describe_unix(int fd, HttpPeer& peer) {
  peer.address = "unix";
  peer.is_unix = peer.is_loopback = true;
#ifdef __linux__
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return;
  peer.uid = credentials.uid;
  peer.gid = credentials.gid;
  peer.pid = credentials.pid;
#else
  uid_t uid = 0;
  gid_t gid = 0;
  if (::getpeereid(fd, &uid, &gid) != 0) return;
  peer.uid = uid;
  peer.gid = gid;
#endif
}

int family_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? address.ss_family : AF_UNSPEC;
}

}  // namespace

HttpPeer describe_peer(StreamSocket& socket) {
  HttpPeer peer;
  const int fd = socket.native_handle();
  if (family_of(fd) == AF_UNIX) {
    describe_unix(fd, peer);
    return peer;
  }
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) describe_ip(address, peer);
  return peer;
}

bool closed_behind_bytes(StreamSocket& socket) {
#ifdef POLLRDHUP
  pollfd watched{socket.native_handle(), POLLRDHUP, 0};
  return ::poll(&watched, 1, 0) > 0 && (watched.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
#else
  (void)socket;
  return false;
#endif
}

bool hung_up(StreamSocket& socket) {
  pollfd watched{socket.native_handle(), 0, 0};
  return ::poll(&watched, 1, 0) > 0 && (watched.revents & (POLLHUP | POLLERR)) != 0;
}

void wake_at(StreamSocket& socket, std::size_t bytes) {
  const auto least = static_cast<int>(bytes);
  ::setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

void configure_stream(StreamSocket& socket, [[maybe_unused]] Duration timeout,
                      [[maybe_unused]] std::size_t unsent_bytes) {
  const int fd = socket.native_handle();
  if (family_of(fd) == AF_UNIX) return;
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#ifdef TCP_USER_TIMEOUT
  const auto limit = static_cast<unsigned>(std::chrono::duration_cast<milliseconds>(timeout).count());
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
#endif
#ifdef TCP_NOTSENT_LOWAT
  const auto unsent = static_cast<unsigned>(unsent_bytes);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
#endif
}

}  // namespace chasqui::net
