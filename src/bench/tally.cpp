#include "bench/tally.h"

#include <algorithm>

namespace chasqui::bench {

std::string error_kind(const Outcome& outcome) {
  switch (outcome.ending) {
    case Ending::ok:
    case Ending::refused:
    case Ending::abandoned: return "none";
    case Ending::connect: return "connect";
    case Ending::closed: return "closed-early";
    case Ending::timeout: return "timeout";
    case Ending::bad_http: return "bad-http";
    case Ending::status: return "http-" + std::to_string(outcome.status);
    case Ending::stream_error: return "stream-error";
    case Ending::empty: return "no-tokens";
  }
  return "none";
}

void Tally::add_refusal(int status, bool has_delay) {
  Refusals& refusals_of = refusals[status];
  ++(has_delay ? refusals_of.with_delay : refusals_of.without_delay);
}

void Tally::add(const Outcome& outcome, int tries, const Goodput& goodput, TimePoint intended, TimePoint end) {
  ++requests;
  first_start = std::min(first_start, intended);
  last_end = std::max(last_end, end);
  if (tries > 1) ++retried;
  if (outcome.ending == Ending::refused) {
    ++refused;
  } else if (outcome.ending == Ending::abandoned) {
    ++abandoned;
  } else if (outcome.ending != Ending::ok) {
    ++errors;
    ++error_kinds[error_kind(outcome)];
  }
  if (outcome.ending != Ending::ok) return;

  ++ok;
  if (tries > 1) ++retried_ok;
  if (goodput.met_by(outcome.took)) ++good;
  e2e.add(outcome.took.e2e);
  if (outcome.streamed) {
    ttft.add(outcome.took.ttft);
    itl.add(outcome.gaps);
    if (outcome.tokens > 1) tpot.add(outcome.took.tpot);
    if (outcome.counts_differ) ++counts_differ;
    streamed_tokens += outcome.tokens;
  }
  tokens += outcome.tokens;
  chunks += outcome.chunks;
  prompt_tokens += outcome.prompt_tokens;
  cached_tokens += outcome.cached_tokens;
}

void Tally::add(const Tally& other) {
  requests += other.requests, ok += other.ok, refused += other.refused;
  abandoned += other.abandoned, errors += other.errors;
  for (const auto& [kind, count] : other.error_kinds) error_kinds[kind] += count;
  for (const auto& [status, counts] : other.refusals) {
    refusals[status].with_delay += counts.with_delay;
    refusals[status].without_delay += counts.without_delay;
  }
  retried += other.retried, retried_ok += other.retried_ok;
  ttft.add(other.ttft), itl.add(other.itl), tpot.add(other.tpot), e2e.add(other.e2e), late.add(other.late);
  tokens += other.tokens, streamed_tokens += other.streamed_tokens, chunks += other.chunks;
  prompt_tokens += other.prompt_tokens, cached_tokens += other.cached_tokens;
  counts_differ += other.counts_differ, good += other.good;
  first_start = std::min(first_start, other.first_start);
  last_end = std::max(last_end, other.last_end);
}

double Tally::wall_s() const { return last_end > first_start ? to_seconds(last_end - first_start) : 0; }

}  // namespace chasqui::bench
