// What became of the requests of a group, and what they took. Percentiles are of requests that got a whole answer.
// Owned by the run; single-threaded.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "bench/goodput.h"
#include "bench/samples.h"

namespace chasqui::bench {

enum class Ending {
  ok,
  refused,    // 429 or 503
  abandoned,  // the client left, as it was told to
  connect,    // no connection
  closed,     // the server closed before the answer was complete
  timeout,
  bad_http,      // no HTTP/1.1 response
  status,        // another status than 200
  stream_error,  // an error event, or a stream that is no SSE
  empty,         // a complete answer without a token
};

// One try to get an answer, or several when the client came again.
struct Outcome {
  Ending ending = Ending::connect;
  int status = 0;
  bool streamed = true;
  Latencies took;
  Samples gaps;                    // between tokens
  std::int64_t chunks = 0;         // tokens as they were counted in the stream
  std::int64_t tokens = 0;         // as usage says, else as counted
  std::int64_t prompt_tokens = 0;  // 0: not said
  std::int64_t cached_tokens = 0;
  bool counts_differ = false;  // usage says another number of tokens than was counted, beside the one that ends it
};

// "timeout", "http-500" …
std::string error_kind(const Outcome& outcome);

struct Tally {
  std::int64_t requests = 0, ok = 0, refused = 0, abandoned = 0, errors = 0;
  std::map<std::string, std::int64_t> error_kinds;

  // Each refused try counts here, so with retries there may be more of these than requests.
  struct Refusals {
    std::int64_t with_delay = 0;  // said when to come again
    std::int64_t without_delay = 0;
  };
  std::map<int, Refusals> refusals;  // by status
  std::int64_t retried = 0, retried_ok = 0;

  Samples ttft, itl, tpot, e2e;  // ms
  Samples late;                  // ms after the intended time that the generator came to sending: its own fault
  std::int64_t tokens = 0, prompt_tokens = 0, cached_tokens = 0;
  std::int64_t streamed_tokens = 0, chunks = 0;  // of streams: what usage says, and what had text
  std::int64_t counts_differ = 0;                // requests
  std::int64_t good = 0;                         // requests that met the goodput limits
  TimePoint first_start = TimePoint::max(), last_end = TimePoint::min();

  void add_refusal(int status, bool has_delay);
  // `tries` is how often the request was sent.
  void add(const Outcome& outcome, int tries, const Goodput& goodput, TimePoint intended, TimePoint end);
  void add(const Tally& other);
  double wall_s() const;
};

}  // namespace chasqui::bench
