// Where the server is: http://host:port, with a path before /v1 if need be, or unix:path. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui::bench {

struct Target {
  std::string host;  // empty for a Unix socket
  std::uint16_t port = 80;
  std::string socket_path;
  std::string base;         // "" or "/path"
  std::string host_header;  // what the Host header says
};

Result<Target> parse_target(std::string_view url);

}  // namespace chasqui::bench
