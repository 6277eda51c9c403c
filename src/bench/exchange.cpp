#include "bench/exchange.h"

#include <algorithm>

#include "bench/retry_policy.h"

namespace chasqui::bench {

net::Awaitable<void> Exchange::run() {
  connection_.set_deadline(ask_.deadline);
  // A kept connection that the server closed while it was idle says nothing about the server: once more on a new one.
  const bool stale = connection_.is_open() && connection_.was_used();
  bool settled = co_await try_once();
  if (!settled && stale && !connection_.timed_out()) {
    settled = co_await try_once();
  }
  connection_.clear_deadline();
  finish(clock_.now());
  const bool reusable = reader_.done() && reader_.keeps_alive() && !left_;
  if (reusable) {
    connection_.mark_used();
  } else {
    connection_.close();
  }
}

// False when the connection broke before any answer.
net::Awaitable<bool> Exchange::try_once() {
  connected_ = co_await connection_.open();
  if (!connected_) co_return false;
  const bool written = co_await connection_.write(ask_.bytes);
  if (written && ask_.abandon_after == 0) {
    left_ = true;
    co_return true;
  }
  // When writing broke off, the server may have said why.
  co_await read_answer();
  if (!answered_) connection_.close();
  co_return answered_;
}

net::Awaitable<void> Exchange::read_answer() {
  while (!reader_.done() && !reader_.failed() && !scanner_.failed() && !left_) {
    const std::string_view bytes = co_await connection_.read();
    if (bytes.empty()) {
      reader_.close();
      co_return;
    }
    answered_ = true;
    take(bytes, clock_.now());
  }
}

void Exchange::take(std::string_view bytes, TimePoint now) {
  chunks_.clear();
  while (!bytes.empty() && !reader_.done() && !reader_.failed()) {
    const std::string_view piece = reader_.take(bytes);
    if (piece.empty()) continue;
    if (is_stream()) {
      scanner_.feed(piece, chunks_);
    } else if (body_.size() + piece.size() <= kBodyMax) {
      body_ += piece;
    }
  }
  if (!chunks_.empty()) count(now);
}

// Chunks that came in one read came at the same time; the tokens of one chunk share the gap before it.
void Exchange::count(TimePoint now) {
  for (const std::int32_t tokens : chunks_) {
    if (first_token_ == TimePoint{}) {
      first_token_ = now;
    } else {
      const Duration gap = now - last_token_;
      worst_gap_ = std::max(worst_gap_, gap);
      for (std::int32_t i = 0; i < tokens; ++i) outcome_.gaps.add(to_milliseconds(gap) / tokens);
    }
    last_token_ = now;
  }
  left_ = leaves_now();
}

std::optional<Duration> Exchange::retry_delay() const {
  return bench::retry_delay(reader_.retry_after(), reader_.retry_after_ms());
}

Ending Exchange::judge() const {
  if (left_) return Ending::abandoned;
  if (connection_.timed_out()) return Ending::timeout;
  if (!connected_) return Ending::connect;
  if (reader_.failed()) return Ending::bad_http;
  if (!reader_.head_done()) return Ending::closed;
  if (is_refusal(reader_.status())) return Ending::refused;
  if (reader_.status() != 200) return Ending::status;
  if (scanner_.failed()) return Ending::stream_error;
  // Some servers end a stream by closing after [DONE].
  if (!reader_.done() && !scanner_.done()) return Ending::closed;
  if (ask_.stream && scanner_.tokens() == 0 && scanner_.usage().completion < 1) return Ending::empty;
  return Ending::ok;
}

void Exchange::finish(TimePoint now) {
  outcome_.ending = judge();
  outcome_.status = reader_.status();
  outcome_.streamed = ask_.stream;
  if (outcome_.ending != Ending::ok) return;

  Usage usage = scanner_.usage();
  if (!ask_.stream) scan_usage(body_, usage);
  outcome_.chunks = scanner_.tokens();
  outcome_.tokens = usage.completion >= 0 ? usage.completion : scanner_.tokens();
  // The token that ends an answer is counted, and has no text.
  const std::int64_t silent = usage.completion - scanner_.tokens();
  outcome_.counts_differ = ask_.stream && usage.completion >= 0 && silent != 0 && silent != 1;
  outcome_.prompt_tokens = std::max<std::int64_t>(usage.prompt, 0);
  outcome_.cached_tokens = std::max<std::int64_t>(usage.cached, 0);

  Latencies& took = outcome_.took;
  took.e2e = to_milliseconds(now - ask_.intended);
  took.ttft = took.e2e;
  if (first_token_ == TimePoint{}) return;
  took.ttft = to_milliseconds(first_token_ - ask_.intended);
  took.worst_gap = to_milliseconds(worst_gap_);
  if (outcome_.tokens > 1) {
    took.tpot = to_milliseconds(last_token_ - first_token_) / static_cast<double>(outcome_.tokens - 1);
  }
}

}  // namespace chasqui::bench
