// Everything that net counts. Owned by the application, one for the process, written on the loop, read by the page.
#pragma once

#include <string>

#include "base/metric_set.h"

namespace chasqui::net {

struct NetMetrics : MetricSet {
  Gauge connections_open{*this, {"chasqui_http_connections_open", "Connections open now."}};
  Counter connections_accepted{*this, {"chasqui_http_connections_accepted_total", "Connections accepted."}};
  Counter accept_failures{*this, {"chasqui_http_accept_failures_total", "Connections that could not be accepted."}};
  Counter accept_pauses{*this, {"chasqui_http_accept_pauses_total", "Times that the connection limit was reached."}};
  Gauge exchanges_running{*this, {"chasqui_http_exchanges_running", "Requests being answered now."}};
  MetricArray<Counter, 5> responses{*this, [](std::size_t i) {
                                      return MetricRow("chasqui_http_responses_total", "Responses by status class.",
                                                       metric_label("class", std::to_string(i + 1) + "xx"));
                                    }};
  Counter requests_refused{*this,
                           {"chasqui_http_requests_refused_total", "Requests that broke a rule or limit of HTTP."}};
  // Refused by net/web_policy.h.
  Counter pages_host{
      *this,
      {"chasqui_http_pages_refused_total", "Requests of web pages refused, by what was wrong.", "reason=\"host\""}};
  Counter pages_origin{*this, {"chasqui_http_pages_refused_total", {}, "reason=\"origin\""}};
  Counter pages_type{*this, {"chasqui_http_pages_refused_total", {}, "reason=\"type\""}};
  Counter timeouts_handshake{*this,
                             {"chasqui_http_timeouts_total", "Connections and requests that ran out of time, by phase.",
                              "phase=\"handshake\""}};
  Counter timeouts_header{*this, {"chasqui_http_timeouts_total", {}, "phase=\"header\""}};
  Counter timeouts_body{*this, {"chasqui_http_timeouts_total", {}, "phase=\"body\""}};
  Counter timeouts_write{*this, {"chasqui_http_timeouts_total", {}, "phase=\"write\""}};
  Counter timeouts_idle{*this, {"chasqui_http_timeouts_total", {}, "phase=\"idle\""}};
  Counter handshakes{*this, {"chasqui_tls_handshakes_total", "TLS handshakes that were completed."}};
  // No TLS, other versions, too slow, too many.
  Counter handshakes_failed{*this, {"chasqui_tls_handshakes_failed_total", "TLS handshakes that were not."}};
  Counter clients_gone{*this,
                       {"chasqui_http_clients_gone_total", "Clients that left before their answer was complete."}};
  Gauge body_bytes{*this, {"chasqui_http_body_bytes", "Request bodies in memory."}};
  Gauge answer_bytes{*this, {"chasqui_http_answer_bytes", "Whole answers in memory that clients have not read."}};
  Counter answers_refused{
      *this, {"chasqui_http_answers_refused_total", "Answers that had no room beside those that are unread."}};
  Counter answers_compressed{
      *this, {"chasqui_http_compressed_total", "Answers that were compressed, as their clients asked."}};
  Counter bytes_saved{*this, {"chasqui_http_compressed_saved_bytes_total", "Bytes that this has saved."}};
  Counter bytes_in{*this, {"chasqui_http_received_bytes_total", "Bytes received."}};
  Counter bytes_out{*this, {"chasqui_http_sent_bytes_total", "Bytes sent."}};
  Counter loop_stalls{*this, {"chasqui_loop_stalls_total", "Turns of the event loop over 5 ms."}};
  Counter lost_exceptions{*this,
                          {"chasqui_loop_lost_exceptions_total", "Exceptions that left a coroutine; each is a bug."}};

  void count_response(int status);
  // `status` is that of a WebRefusal.
  void count_page_refused(int status);
};

}  // namespace chasqui::net
