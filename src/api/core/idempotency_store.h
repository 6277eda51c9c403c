// The answers to requests that had an Idempotency-Key, for clients that send a request again because they do not know
// whether it came through. Loop thread only.
//
// bounded: answers, bytes in all and of each tenant; the oldest makes room, and each is forgotten when its time is
// over. Requests under way are as many as there are connections. Nothing is seen by another tenant than its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/limits.h"
#include "base/metric_set.h"
#include "net/recorded_exchange.h"
#include "net/sha256.h"

namespace chasqui {

struct IdempotencyLimits {
  std::size_t answers = kSizeLimit<"idempotent_answers">;
  std::size_t tenant_bytes = kSizeLimit<"idempotent_tenant_bytes">;
  std::size_t bytes = kSizeLimit<"idempotent_bytes">;
  Duration ttl = kTimeLimit<"idempotent_seconds">;
};

struct IdempotencyMetrics : MetricSet {
  Gauge answers{*this, {"chasqui_idempotent_answers", "Answers kept for their Idempotency-Key."}};
  Gauge bytes{*this, {"chasqui_idempotent_answer_bytes", "Bytes of these answers."}};
  Counter replayed{*this, {"chasqui_idempotent_replays_total", "Requests that got the answer to an earlier one."}};
  // The first request with the key was under way, or it was another request.
  Counter running{*this,
                  {"chasqui_idempotent_refused_total", "Requests refused for their Idempotency-Key, by what was wrong.",
                   "reason=\"running\""}};
  Counter other{*this, {"chasqui_idempotent_refused_total", {}, "reason=\"other_request\""}};
};

class IdempotencyStore {
 public:
  using Name = std::pair<std::uint32_t, std::string>;  // the tenant and its key
  using AnswerPtr = std::shared_ptr<const net::RecordedAnswer>;

  enum class State { fresh, running, other_request, answered };
  struct Found {
    State state = State::fresh;
    AnswerPtr answer{};  // where it is answered
  };

  explicit IdempotencyStore(IdempotencyLimits limits = {}) : limits_(limits) {}

  // Where the key is fresh the caller answers, and says keep() or forget() in the end.
  Found begin(const Name& name, const net::Sha256& request, TimePoint now);
  void keep(const Name& name, AnswerPtr answer, TimePoint now);
  void forget(const Name& name);

  IdempotencyMetrics& metrics() { return metrics_; }

 private:
  struct Entry {
    net::Sha256 request{};
    AnswerPtr answer{};  // null while it runs
    TimePoint expires{};
    std::size_t bytes = 0;
  };

  void make_room(std::uint32_t tenant, TimePoint now);
  void drop(std::list<Name>::iterator answered);

  const IdempotencyLimits limits_;
  std::map<Name, Entry> entries_;
  std::list<Name> answered_;  // the oldest first
  std::map<std::uint32_t, std::size_t> tenant_bytes_;
  std::size_t bytes_ = 0;
  IdempotencyMetrics metrics_;
};

}  // namespace chasqui
