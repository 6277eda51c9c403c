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
// … and for so long that copies, of the sequences in all slots, take at most a twentieth of the time …
constexpr int kCopiesPart = 20;
// … and for so many slices where another one of its own tenant waits: answers that end soon are not interrupted.
constexpr int kSlicesOfEqual = 8;
// In one pool: cells that are kept free for each running sequence when another one starts, so that it is not put aside
// again at once.
constexpr TokenCount kCellsAhead = 4;

// A tenant, or a group of its requests, has had more than another one when its counter is ahead by what that many
// generated tokens cost.
constexpr double kServedMore = kTelling * TenantCounters::kTokenCost;

// How long `running` may keep its slot while `waiting` wants it. `swap`: what a copy of it and back takes, in seconds.
inline Duration slice_of(const Standing& running, const Standing& waiting, double swap, std::int32_t slots) {
  const std::chrono::duration<double> copies(kCopiesPart * slots * swap);
  const Duration slice = std::max(kSliceLeast, std::chrono::duration_cast<Duration>(copies));
  const bool shares = running.group_service - waiting.group_service < kServedMore;
  const bool equal = running.tenant == waiting.tenant && running.service_class == waiting.service_class && shares;
  return equal ? kSlicesOfEqual * slice : slice;
}

// For a sequence of so many tokens to start beside `others` running ones.
inline TokenCount cells_to_start(TokenCount length, std::size_t others, bool unified) {
  return !unified || others == 0 ? length : length + kCellsAhead * static_cast<TokenCount>(others + 1);
}

}  // namespace chasqui
