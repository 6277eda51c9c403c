// Everything that net counts. Owned by the application, one for the process, written on the loop, read by the page.
#pragma once

#include <array>

#include "base/metrics.h"

namespace chasqui::net {

struct NetMetrics {
  Gauge connections_open;
  Gauge exchanges_running;
  Gauge body_bytes;    // request bodies in memory
  Gauge answer_bytes;  // whole answers that clients have not read
  Counter connections_accepted;
  Counter accept_failures;
  Counter accept_pauses;                         // the connection cap was reached
  std::array<Counter, 5> responses;              // by class: 1xx … 5xx
  Counter requests_refused;                      // the head or body broke a rule or a limit
  Counter pages_host, pages_origin, pages_type;  // of web pages, refused by net/web_policy.h
  Counter handshakes;                            // of TLS, complete
  Counter handshakes_failed;                     // … not: no TLS, other versions, too slow, too many
  Counter timeouts_handshake;
  Counter timeouts_header, timeouts_body, timeouts_write, timeouts_idle;
  Counter answers_refused;  // for too much was unread
  Counter answers_compressed;
  Counter bytes_saved;   // by that
  Counter clients_gone;  // left before their answer was complete
  Counter bytes_in, bytes_out;
  Counter loop_stalls;
  Counter lost_exceptions;  // left a coroutine; each is a bug

  void count_response(int status);
  // `status` is that of a WebRefusal.
  void count_page_refused(int status);
  // Adds chasqui_http_… and chasqui_loop_… to the page.
  void add_to(MetricsPage& page) const;
};

}  // namespace chasqui::net
