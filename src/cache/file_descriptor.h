// An open file that closes itself. A value that moves; any thread, one at a time.
#pragma once

#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace chasqui {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Another one of the same open file; a lock is given up when the last of them goes.
  FileDescriptor again() const { return FileDescriptor(is_open() ? ::fcntl(fd_, F_DUPFD_CLOEXEC, 0) : -1); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace chasqui
