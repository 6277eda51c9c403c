// Service that each tenant has received, in weighted tokens, so that who got least goes next (virtual token counters).
// A tenant that comes back is lifted to the least served of those who stayed: time away earns no credit. Owned by the
// Scheduler; pure. Tenants without work whose counter says nothing any more are forgotten, so the table is bounded by
// the tenants with work plus those who left less than a busy period ago.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "core/types.h"

namespace chasqui {

class TenantCounters {
 public:
  // What a generated token costs: a step of its own. Tokens of a prompt share theirs, and cost 1.
  static constexpr double kTokenCost = 2;

  // A request of the tenant came in, or the last word of one was said.
  void join(const Tenant& tenant);
  void leave(const Tenant& tenant);
  // REQUIRES: it has joined.
  // Cached ones cost next to nothing: a copy.
  void charge_prompt(const Tenant& tenant, TokenCount tokens, TokenCount cached = 0) {
    charge(tenant, tokens - cached + kCachedCost * cached);
  }
  void charge_token(const Tenant& tenant) { charge(tenant, kTokenCost); }

  double of(const Tenant& tenant) const;
  std::size_t size() const { return table_.size(); }

 private:
  static constexpr double kCachedCost = 0.02;

  struct Counter {
    double service = 0;
    std::int32_t requests = 0;
  };

  void charge(const Tenant& tenant, double tokens);
  double least_of_busy() const;
  void forget_idle();

  std::unordered_map<std::uint32_t, Counter> table_;
  double floor_ = 0;  // what a tenant has at least when it joins; never falls
  std::int32_t busy_ = 0;
};

}  // namespace chasqui
