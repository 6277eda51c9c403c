// What a run did, counted for all requests, for each class and for each tenant. Owned by the simulation, read by the
// report; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cache/prefix_cache.h"
#include "core/batch.h"
#include "core/event.h"
#include "sim/contention.h"
#include "sim/percentiles.h"
#include "sim/sim_request.h"
#include "sim/token_windows.h"

namespace chasqui {

// Limits that make an answer a good one; none: does not matter.
struct Objective {
  std::optional<Duration> ttft;
  std::optional<Duration> itl;   // the longest gap between two tokens
  std::optional<Duration> tpot;  // the mean gap
  std::optional<Duration> e2e;

  // `ttft:1000,itl:200` in milliseconds.
  static Result<Objective> parse(std::string_view text, const std::string& field);
};

enum class Outcome : std::uint8_t { ok, refused, cancelled, deadline, failed };
constexpr std::size_t kOutcomes = 5;
std::string_view name(Outcome outcome);

struct Group {
  std::string name;
  std::uint64_t requests = 0;
  std::uint64_t outcomes[kOutcomes] = {};
  std::uint64_t good = 0;      // ok, and within the objective
  std::uint64_t refusals = 0;  // one request may be refused several times
  std::uint64_t preemptions = 0;
  std::uint64_t prompt_tokens = 0;  // of requests that got a token
  std::uint64_t tokens = 0;         // generated
  std::uint64_t good_tokens = 0;
  Percentiles ttft;  // from the client's first try
  Percentiles kept;  // … from the try that was let in: what admission promised
  Percentiles itl;
  Percentiles tpot;
  Percentiles e2e;  // of answers that are complete
};

class Statistics {
 public:
  Statistics(const Workload& workload, const Objective& objective);

  void arrived(const SimRequest& life);
  void refused(const SimRequest& life);
  // REQUIRES: checked before. Text that a client sees at `now`.
  void told(SimRequest& life, const Event& event, TimePoint now);
  void ended(const SimRequest& life, Outcome outcome, TimePoint now);
  void step(const Batch& batch, DecodeStatus status, Duration took, std::int32_t passes);
  // All events go into one hash, in their order.
  void hash(const Event& event, std::uint64_t serial, TimePoint now);

  // All, the classes, the tenants.
  const std::vector<Group>& groups() const { return groups_; }
  Group& all() { return groups_.front(); }
  const Group& all() const { return groups_.front(); }

  struct Steps {
    std::uint64_t decode = 0;
    std::uint64_t prefill = 0;
    std::uint64_t decode_rows = 0;
    std::uint64_t prefill_rows = 0;
    std::uint64_t passes = 0;
    std::uint64_t aborted = 0;
    std::uint64_t failed = 0;
    Duration busy{};
    std::uint64_t count() const { return decode + prefill; }
  };
  const Steps& steps() const { return steps_; }
  std::uint64_t event_hash() const { return hash_; }
  std::uint64_t cached_tokens() const { return cached_tokens_; }
  // Turns of a conversation that have ended with their answer, but for its first.
  struct Returning {
    std::uint64_t turns = 0;
    std::uint64_t found = 0;  // with all but a fiftieth of what was said before in the cache
    std::uint64_t said_tokens = 0;
    std::uint64_t found_tokens = 0;
    Percentiles ttft;
  };
  const Returning& returning() const { return returning_; }
  // Prompt tokens whose prefix an earlier request had as well: what a perfect prefix cache would save.
  std::uint64_t shared_tokens() const { return shared_tokens_; }

  Contention contention;
  TokenWindows token_windows;
  Duration virtual_time{};  // of the whole run
  std::uint64_t moves = 0;
  std::uint64_t recomputed_rows = 0;
  std::uint64_t prompt_rows = 0;  // of prompts, computed
  PrefixCache::Stats cache;       // at the end
  std::uint64_t prefix_waits = 0;
  std::uint64_t drafted = 0;   // draft tokens that had rows
  std::uint64_t accepted = 0;  // … and were accepted
  std::uint64_t adapter_switches = 0;
  std::uint64_t disk_reads = 0;
  std::int32_t most_passed = 0;  // younger ones of its kind that got a slot before a request

 private:
  template <class Change>
  void each_group(const SimRequest& life, Change change);
  void returned(const SimRequest& life, Duration ttft);
  bool good(const SimRequest& life, Duration ttft, Duration tpot, Duration e2e) const;

  const Objective objective_;
  std::vector<Group> groups_;
  std::vector<TokenCount> seen_prefix_;  // how much of each prefix was asked for before
  Steps steps_;
  Returning returning_;
  std::uint64_t hash_ = 0;
  std::uint64_t cached_tokens_ = 0;
  std::uint64_t shared_tokens_ = 0;
};

}  // namespace chasqui
