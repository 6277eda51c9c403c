#include "net/net_metrics.h"

#include <algorithm>
#include <string>

namespace chasqui::net {

void NetMetrics::count_response(int status) {
  responses[static_cast<std::size_t>(std::clamp(status / 100, 1, 5) - 1)].add();
}

void NetMetrics::count_page_refused(int status) {
  (status == 421 ? pages_host : status == 415 ? pages_type : pages_origin).add();
}

void NetMetrics::add_to(MetricsPage& page) const {
  page.add("chasqui_http_connections_open", "Connections open now.", connections_open);
  page.add("chasqui_http_connections_accepted_total", "Connections accepted.", connections_accepted);
  page.add("chasqui_http_accept_failures_total", "Connections that could not be accepted.", accept_failures);
  page.add("chasqui_http_accept_pauses_total", "Times that the connection limit was reached.", accept_pauses);
  page.add("chasqui_http_exchanges_running", "Requests being answered now.", exchanges_running);
  for (std::size_t i = 0; i < responses.size(); ++i) {
    page.add("chasqui_http_responses_total", "Responses by status class.", responses[i],
             "class=\"" + std::to_string(i + 1) + "xx\"");
  }
  page.add("chasqui_http_requests_refused_total", "Requests that broke a rule or limit of HTTP.", requests_refused);
  const std::string pages = "Requests of web pages refused, by what was wrong.";
  page.add("chasqui_http_pages_refused_total", pages, pages_host, "reason=\"host\"");
  page.add("chasqui_http_pages_refused_total", pages, pages_origin, "reason=\"origin\"");
  page.add("chasqui_http_pages_refused_total", pages, pages_type, "reason=\"type\"");
  const std::string timeouts = "Connections and requests that ran out of time, by phase.";
  page.add("chasqui_http_timeouts_total", timeouts, timeouts_handshake, "phase=\"handshake\"");
  page.add("chasqui_http_timeouts_total", timeouts, timeouts_header, "phase=\"header\"");
  page.add("chasqui_http_timeouts_total", timeouts, timeouts_body, "phase=\"body\"");
  page.add("chasqui_http_timeouts_total", timeouts, timeouts_write, "phase=\"write\"");
  page.add("chasqui_http_timeouts_total", timeouts, timeouts_idle, "phase=\"idle\"");
  page.add("chasqui_tls_handshakes_total", "TLS handshakes that were completed.", handshakes);
  page.add("chasqui_tls_handshakes_failed_total", "TLS handshakes that were not.", handshakes_failed);
  page.add("chasqui_http_clients_gone_total", "Clients that left before their answer was complete.", clients_gone);
  page.add("chasqui_http_body_bytes", "Request bodies in memory.", body_bytes);
  page.add("chasqui_http_answer_bytes", "Whole answers in memory that clients have not read.", answer_bytes);
  page.add("chasqui_http_answers_refused_total", "Answers that had no room beside those that are unread.",
           answers_refused);
  page.add("chasqui_http_compressed_total", "Answers that were compressed, as their clients asked.",
           answers_compressed);
  page.add("chasqui_http_compressed_saved_bytes_total", "Bytes that this has saved.", bytes_saved);
  page.add("chasqui_http_received_bytes_total", "Bytes received.", bytes_in);
  page.add("chasqui_http_sent_bytes_total", "Bytes sent.", bytes_out);
  page.add("chasqui_loop_stalls_total", "Turns of the event loop over 5 ms.", loop_stalls);
  page.add("chasqui_loop_lost_exceptions_total", "Exceptions that left a coroutine; each is a bug.", lost_exceptions);
}

}  // namespace chasqui::net
