// The client's end of the local socket (docs/protocol.md), for commands that have nothing else to do: one connection,
// frames out and in, blocking. Knows lengths and bytes only. One thread.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace chasqui::net {

class FrameLine {
 public:
  FrameLine() = default;
  ~FrameLine() { close(); }
  FrameLine(const FrameLine&) = delete;
  FrameLine& operator=(const FrameLine&) = delete;

  // Errors say who does not listen, and where.
  Result<void> open(const std::string& path);
  bool is_open() const { return fd_ >= 0; }
  void close();
  Result<void> send(std::string_view body);
  // The body of the next frame; empty when it was not there within `patience`, or a signal came.
  Result<std::string> next(Duration patience);

 private:
  bool whole_frame() const { return received_.size() >= 4 && received_.size() >= 4 + length(); }
  std::size_t length() const;

  int fd_ = -1;
  std::string received_;
};

}  // namespace chasqui::net
