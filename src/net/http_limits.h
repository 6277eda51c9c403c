// What a client may cost: sizes, times and counts of the HTTP server. Constant after start; shown by the API.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace chasqui::net {

struct HttpLimits {
  // Sizes in bytes.
  std::size_t request_line_bytes = 8 * 1024;         // over it: 414
  std::size_t header_bytes = 16 * 1024;              // names, values and line ends together; over it: 431
  std::size_t header_count = 100;                    // over it: 431
  std::size_t body_bytes = 32 * 1024 * 1024;         // over it: 413
  std::size_t bodies_bytes = 512 * 1024 * 1024;      // all bodies in memory at one time; over it: 503
  std::size_t pipelined_bytes = 64 * 1024;           // read ahead behind a running exchange; the rest waits
  std::size_t unsent_bytes = 128 * 1024;             // that the kernel may hold for a client that reads too slowly

  Duration header_time = seconds(10);      // from the first byte of a request to the end of its headers: 408
  Duration body_time = seconds(30);        // from the end of the headers to the end of the body: 408
  Duration keep_alive_time = seconds(60);  // silence before the first byte of a request: closed without a word
  Duration write_time = seconds(30);       // without the client taking a single byte: closed
  Duration linger_time = seconds(2);       // to let a refused client read why, before its unread data is reset

  // 0: 12,000 or half of the descriptors that the process may open, whichever is less. At the cap accepting pauses.
  std::size_t connections = 0;

  // `connections`, or what its 0 stands for.
  std::size_t connections_max() const;
};

}  // namespace chasqui::net
