// The answers to requests that had an Idempotency-Key, for clients that send a request again because they do not know
// whether it came through. Loop thread only.
//
// bounded: answers, bytes in all and of each tenant (api/core/tenant_store); requests under way are as many as there
// are connections. Nothing is seen by another tenant than its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/core/tenant_store.h"
#include "base/clock.h"
#include "base/free_later.h"
#include "base/limits.h"
#include "base/metric_set.h"
#include "net/recorded_exchange.h"
#include "net/sha256.h"

namespace chasqui {

inline constexpr TenantStoreLimits kIdempotencyLimits{.entries = kSizeLimit<"idempotent_answers">,
                                                      .bytes = kSizeLimit<"idempotent_bytes">,
                                                      .tenant_bytes = kSizeLimit<"idempotent_tenant_bytes">,
                                                      .ttl = kTimeLimit<"idempotent_seconds">};

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
  using AnswerPtr = std::shared_ptr<const net::RecordedAnswer>;
  struct Kept {
    net::Sha256 request{};
    AnswerPtr answer{};
  };
  using Name = TenantStore<Kept>::Name;  // the tenant and its key

  enum class State { fresh, running, other_request, answered };
  struct Found {
    State state = State::fresh;
    AnswerPtr answer{};  // where it is answered
  };

  explicit IdempotencyStore(const TenantStoreLimits& limits = kIdempotencyLimits) : answered_(limits) {}
  void set_free_later(FreeLater call) { answered_.set_free_later(std::move(call)); }

  // Where the key is fresh the caller answers, and says keep() or forget() in the end.
  Found begin(const Name& name, const net::Sha256& request, TimePoint now);
  void keep(const Name& name, AnswerPtr answer, TimePoint now);
  void forget(const Name& name) { running_.erase(name); }

  IdempotencyMetrics& metrics() { return metrics_; }

 private:
  void tell();

  TenantStore<Kept> answered_;
  std::map<Name, net::Sha256> running_;
  IdempotencyMetrics metrics_;
};

}  // namespace chasqui
