// What a client of the local socket may cost. Constant after start; the defaults are those of base/limits.h.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "base/limits.h"

namespace chasqui::net {

struct FrameLimits {
  // Below 16 MiB: the highest byte of a length is 0, which no text has, and by that frames are told from lines.
  std::size_t frame_bytes = kSizeLimit<"frame_bytes">;
  std::size_t line_bytes = kSizeLimit<"frame_line_bytes">;
  std::size_t incomplete_bytes = kSizeLimit<"frames_incomplete_bytes">;  // of all connections together, on their way
  std::size_t unsent_bytes = kSizeLimit<"frame_unsent_bytes">;           // over it the connection is cut
  std::size_t connections = kSizeLimit<"frame_connections">;             // at the cap accepting pauses

  Duration frame_time = kTimeLimit<"frame_seconds">;        // from the first byte of a message to its last
  Duration write_time = kTimeLimit<"frame_write_seconds">;  // without the client taking a single byte
  Duration fresh_time = seconds(1);                         // a younger message is not given up where memory is short
  Duration turn_time = microseconds(250);    // of each pass of the loop, for the messages of all connections
  Duration settle_time = milliseconds(100);  // after which a first line of less than four bytes is a line
};

}  // namespace chasqui::net
