// What a client of the local socket may cost. Constant after start; shown by the API.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace chasqui::net {

struct FrameLimits {
  // Below 16 MiB: the highest byte of a length is 0, which no text has, and by that frames are told from lines.
  std::size_t frame_bytes = 8 * 1024 * 1024;
  std::size_t line_bytes = 64 * 1024;
  std::size_t incomplete_bytes = 256 * 1024 * 1024;  // of all connections together, on their way
  std::size_t unsent_bytes = 256 * 1024;             // over it the connection is cut
  std::size_t connections = 1024;                    // at the cap accepting pauses

  Duration frame_time = seconds(30);         // from the first byte of a message to its last
  Duration write_time = seconds(30);         // without the client taking a single byte
  Duration settle_time = milliseconds(100);  // after which a first line of less than four bytes is a line
};

}  // namespace chasqui::net
