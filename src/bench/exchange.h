// One request sent and its answer read and measured, on one connection. Latencies count from the time that the
// request was meant to be sent, so that a generator or a server that holds it up cannot hide that. Lives in the
// coroutine of its request; the loop's thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bench/connection.h"
#include "bench/response_reader.h"
#include "bench/sse_scanner.h"
#include "bench/tally.h"
#include "net/awaitable.h"

namespace chasqui::bench {

struct Ask {
  std::string bytes;  // head and body
  bool stream = true;
  std::optional<std::int32_t> abandon_after;  // leaves after so many tokens
  TimePoint intended{};
  TimePoint deadline{};
};

class Exchange {
 public:
  // All must outlive the exchange.
  Exchange(Connection& connection, const Ask& ask, const Clock& clock)
      : connection_(connection), ask_(ask), clock_(clock) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Leaves the connection open when it can be used again.
  net::Awaitable<void> run();

  Outcome& outcome() { return outcome_; }
  // When a refused request may come again, if the server said so.
  std::optional<Duration> retry_delay() const;
  // Of an answer that is no stream.
  const std::string& body() const { return body_; }

 private:
  static constexpr std::size_t kBodyMax = 16 << 20;

  net::Awaitable<bool> try_once();
  net::Awaitable<void> read_answer();
  void take(std::string_view bytes, TimePoint now);
  void count(TimePoint now);
  bool leaves_now() const { return ask_.abandon_after && scanner_.tokens() >= *ask_.abandon_after; }
  bool is_stream() const { return ask_.stream && reader_.status() == 200; }
  Ending judge() const;
  void finish(TimePoint now);

  Connection& connection_;
  const Ask& ask_;
  const Clock& clock_;
  Outcome outcome_;
  ResponseReader reader_;
  SseScanner scanner_;
  std::string body_;
  std::vector<std::int32_t> chunks_;  // of one read
  TimePoint first_token_{}, last_token_{};
  Duration worst_gap_{};
  bool connected_ = false;
  bool answered_ = false;  // at least a byte
  bool left_ = false;
};

}  // namespace chasqui::bench
