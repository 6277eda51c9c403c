// Counts by how many younger requests those that wait are passed, and says when that is enough: then a request gets the
// next slot, whatever its class, tenant and length. Bound: of its own tenant and class a request is passed by at most
// kPassedMost younger ones; the oldest of a tenant and class by at most kPassedMost of all others, and one more for
// each tenant and class that is in the same position. Owned by the Scheduler; pure.
#pragma once

#include <cstdint>
#include <map>

#include "sched/wait_queue.h"

namespace chasqui {

class Overtaking {
 public:
  static constexpr std::int32_t kPassedMost = 64;

  // `starter`, which has just left the queue, is about to get a slot. REQUIRES: it is still waiting by its state.
  void starts(const Sequence& starter, const WaitQueue& waiting);
  // It gets the next slot. REQUIRES: it waits.
  bool is_starved(const Sequence& sequence) const;
  // At least one that waits may be starved.
  bool any() const { return any_; }

 private:
  struct Lane {
    TimePoint oldest = kNever;  // arrival of its oldest that waits
    std::int32_t passed = 0;    // starts of other lanes that passed that one
  };
  using Key = std::uint64_t;

  static Key key_of(const Request& request) {
    return std::uint64_t{request.tenant.id} * kServiceClasses + static_cast<std::uint64_t>(request.service_class);
  }

  std::map<Key, Lane> lanes_;  // those in which requests wait
  bool any_ = false;
};

}  // namespace chasqui
