// How long a slot is kept, and how many cells a start takes: the rules of scheduler_slots.cpp that Projection rolls
// forward, too. Pure functions.
#pragma once

#include <algorithm>

#include "sched/standing.h"
#include "sched/tenant_counters.h"
#include "sched/thresholds.h"

namespace chasqui {

// A sequence keeps its slot for so long at least …
constexpr Duration kSliceLeast = seconds(1);
// … and for so long that copies, of the sequences in all slots, take at most a twentieth of the time; where the one
// that waits is of a tenant that has no slot, that its own copies do, and those of the last that gave up its slot …
constexpr int kCopiesPart = 20;
// … and for so many slices where another one of its own tenant waits: answers that end soon are not interrupted.
constexpr int kSlicesOfEqual = 8;
// In one pool: cells that are kept free for each running sequence when another one starts, so that it is not put aside
// again at once.
constexpr TokenCount kCellsAhead = 4;

// A tenant, or a group of its requests, has had more than another one when its counter is ahead by what that many
// generated tokens cost.
constexpr double kServedMore = kTelling * TenantCounters::kTokenCost;

// When a sequence gave up its slot last because its slice was over, and what copies of it and back take, in seconds.
// One that a more urgent class preempted does not count: that is done at once, whatever it costs.
struct LastSwap {
  TimePoint at{};
  double seconds = 0;
};

// What counts for slices beside the two sequences.
struct SliceTerms {
  std::int32_t slots = 1;
  LastSwap last{};
  bool first = false;  // the tenant of the one that waits has no slot
};

// How long `running` may keep its slot while `waiting` wants it. `swap`: what a copy of it and back takes, in seconds.
inline Duration slice_of(const Standing& running, const Standing& waiting, double swap, const SliceTerms& terms) {
  const Duration copies = from_seconds(kCopiesPart * swap);
  if (terms.first) {
    const Duration since_last = terms.last.at + from_seconds(kCopiesPart * terms.last.seconds) - running.slot_since;
    return std::max({kSliceLeast, copies, since_last});
  }
  const bool shares = running.group_service - waiting.group_service < kServedMore;
  const bool equal = running.tenant == waiting.tenant && running.service_class == waiting.service_class && shares;
  return (equal ? kSlicesOfEqual : 1) * std::max(kSliceLeast, terms.slots * copies);
}

// For a sequence of so many tokens to start beside `others` running ones.
inline TokenCount cells_to_start(TokenCount length, std::size_t others, bool unified) {
  return !unified || others == 0 ? length : length + kCellsAhead * static_cast<TokenCount>(others + 1);
}

}  // namespace chasqui
