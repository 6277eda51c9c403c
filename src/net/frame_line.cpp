#include "net/frame_line.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace chasqui::net {
namespace {

constexpr std::size_t kFrameMax = 64 << 20;

Error broken(const std::string& what) { return {ErrorCode::unavailable, what, {}}; }

}  // namespace

void FrameLine::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  received_.clear();
}

Result<void> FrameLine::open(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return invalid_field("--socket",
                         "--socket: the path must have 1 to " + std::to_string(sizeof address.sun_path - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return broken(std::strerror(errno));
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return {};
  const int why = errno;
  close();
  const bool no_server = why == ENOENT || why == ECONNREFUSED;
  return broken(no_server ? "no server listens at " + path : path + ": " + std::strerror(why));
}

Result<void> FrameLine::send(std::string_view body) {
  std::string frame;
  for (int shift = 0; shift < 32; shift += 8) frame += static_cast<char>(body.size() >> shift & 0xff);
  frame += body;
  for (std::string_view rest = frame; !rest.empty();) {
    const ssize_t n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno != EINTR) return broken(std::string("the server has gone: ") + std::strerror(errno));
    if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::size_t FrameLine::length() const {
  std::size_t length = 0;
  for (std::size_t i = 4; i-- > 0;) length = length << 8 | static_cast<unsigned char>(received_[i]);
  return length;
}

Result<std::string> FrameLine::next(Duration patience) {
  if (!whole_frame()) {
    pollfd ready{fd_, POLLIN, 0};
    const int seen = ::poll(&ready, 1, static_cast<int>(to_milliseconds(patience)));
    if (seen == 0 || (seen < 0 && errno == EINTR)) return std::string();
    char piece[16384];
    const ssize_t n = ::recv(fd_, piece, sizeof piece, 0);
    if (n < 0 && errno == EINTR) return std::string();
    if (n <= 0) return broken("the server has closed the connection");
    received_.append(piece, static_cast<std::size_t>(n));
  }
  if (received_.size() >= 4 && length() > kFrameMax) return broken("the server does not speak frames");
  if (!whole_frame()) return std::string();
  std::string body = received_.substr(4, length());
  received_.erase(0, 4 + length());
  return body;
}

}  // namespace chasqui::net
