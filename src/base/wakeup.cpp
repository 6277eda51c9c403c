#include "base/wakeup.h"

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/eventfd.h>
#endif

#include "base/log.h"

namespace chasqui {

Wakeup::Wakeup(Kind best) {
  if (best == Kind::eventfd && open_eventfd()) return;
  if (best != Kind::polling && open_pipe()) return;
  log_warning("no eventfd and no pipe: results are delivered by polling", {});
}

Wakeup::~Wakeup() {
  if (read_fd_ >= 0) ::close(read_fd_);
  if (write_fd_ >= 0 && write_fd_ != read_fd_) ::close(write_fd_);
}

bool Wakeup::open_eventfd() {
#ifdef __linux__
  const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) return false;
  read_fd_ = write_fd_ = fd;
  kind_ = Kind::eventfd;
  return true;
#else
  return false;
#endif
}

bool Wakeup::open_pipe() {
  int fds[2];
  if (::pipe(fds) != 0) return false;
  for (const int fd : fds) {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  read_fd_ = fds[0];
  write_fd_ = fds[1];
  kind_ = Kind::pipe;
  return true;
}

void Wakeup::signal() {
  if (write_fd_ < 0) return;
  // EAGAIN means that the counter or the pipe is full: the descriptor is readable already, nothing is lost.
  const std::uint64_t one = 1;
  while (::write(write_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void Wakeup::acknowledge() {
  if (read_fd_ < 0) return;
  std::uint64_t drained[64];
  for (;;) {
    const ssize_t n = ::read(read_fd_, drained, sizeof drained);
    if (n > 0 && kind_ == Kind::pipe) continue;  // a pipe may hold more; an eventfd is reset by one read
    if (n < 0 && errno == EINTR) continue;
    return;
  }
}

}  // namespace chasqui
