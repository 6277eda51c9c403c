// What a client may cost: sizes, times and counts of the HTTP server. The defaults are those of base/limits.h, which
// also says what happens at each of them. Constant after start.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "base/limits.h"

namespace chasqui::net {

struct HttpLimits {
  std::size_t request_line_bytes = kSizeLimit<"request_line_bytes">;
  std::size_t header_bytes = kSizeLimit<"header_bytes">;  // names, values and line ends together
  std::size_t header_count = kSizeLimit<"header_count">;
  std::size_t body_bytes = kSizeLimit<"body_bytes">;
  std::size_t bodies_bytes = kSizeLimit<"bodies_bytes">;
  std::size_t answers_bytes = kSizeLimit<"answers_bytes">;
  std::size_t pipelined_bytes = kSizeLimit<"pipelined_bytes">;
  std::size_t unsent_bytes = kSizeLimit<"kernel_unsent_bytes">;

  Duration header_time = kTimeLimit<"header_seconds">;
  Duration body_time = kTimeLimit<"body_seconds">;
  Duration body_fresh_time = seconds(1);  // a younger one is not given up for others where memory is short
  Duration keep_alive_time = kTimeLimit<"keep_alive_seconds">;
  Duration write_time = kTimeLimit<"write_seconds">;
  Duration linger_time = kTimeLimit<"linger_seconds">;
  Duration handshake_time = kTimeLimit<"tls_handshake_seconds">;
  Duration turn_time = microseconds(250);  // of each pass of the loop, for the pipelined requests of all connections
  std::size_t handshakes = kSizeLimit<"tls_handshakes">;

  // 0: that of the table, or less where the process may open few descriptors, some of which are for files.
  std::size_t connections = 0;

  // `connections`, or what its 0 stands for.
  std::size_t connections_max() const;
};

}  // namespace chasqui::net
