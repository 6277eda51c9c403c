// A client as blunt as they come, for tests: a blocking socket, bytes out, bytes in. Any thread but the loop's. Reads
// give up after ten seconds, so that a broken server fails a test instead of hanging it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace chasqui::net {

class FakeClient {
 public:
  explicit FakeClient(std::uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect(reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  explicit FakeClient(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connect(reinterpret_cast<sockaddr*>(&address), sizeof address);
  }
  FakeClient(FakeClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  ~FakeClient() { close(); }

  bool connected() const { return connected_; }

  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  // Everything up to and including `mark`; what was read so far when the connection ends or stays silent before.
  std::string read_until(std::string_view mark) {
    std::size_t at = buffer_.find(mark);
    while (at == std::string::npos && read_some()) at = buffer_.find(mark);
    return take(at == std::string::npos ? buffer_.size() : at + mark.size());
  }
  std::string read(std::size_t n) {
    while (buffer_.size() < n && read_some()) {
    }
    return take(std::min(n, buffer_.size()));
  }
  std::string read_to_end() {
    while (read_some()) {
    }
    return take(buffer_.size());
  }
  // A head and as much body as its Content-Length says.
  std::string read_response() {
    std::string response = read_until("\r\n\r\n");
    const std::string_view name = "Content-Length: ";
    const std::size_t at = response.find(name);
    if (at == std::string::npos) return response;
    return response + read(static_cast<std::size_t>(std::atoi(response.c_str() + at + name.size())));
  }
  // A head and a chunked body, as they came.
  std::string read_stream() { return read_until("0\r\n\r\n"); }

  // True when the server closed without another byte.
  bool at_end() { return buffer_.empty() && !read_some() && ended_; }

  void half_close() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // Ends with a reset instead of a FIN.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }

 private:
  void connect(const sockaddr* address, socklen_t size) {
    const timeval limit{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    connected_ = ::connect(fd_, address, size) == 0;
  }

  bool read_some() {
    std::array<char, 16 * 1024> piece;
    const ssize_t n = ::recv(fd_, piece.data(), piece.size(), 0);
    if (n <= 0) {
      ended_ = n == 0 || errno == ECONNRESET;
      return false;
    }
    buffer_.append(piece.data(), static_cast<std::size_t>(n));
    return true;
  }

  std::string take(std::size_t n) {
    std::string text = buffer_.substr(0, n);
    buffer_.erase(0, n);
    return text;
  }

  int fd_;
  bool connected_ = false;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace chasqui::net
