// How many rows of a decode step each sequence gets for the tokens that a grammar has forced in some of them. They are
// certain, so a row for each could be computed at once; but the others get equally many where the slots are dense, and
// rows of no use take time. Pure.
#pragma once

#include <span>

#include "base/clock.h"
#include "core/sequence.h"
#include "core/types.h"
#include "sched/step_time.h"

namespace chasqui {

struct ForcedRoom {
  TokenCount rows = 0;            // of the batch
  TokenCount cells_per_slot = 0;  // of each sequence
  bool even = false;              // all sequences get equally many rows, or more than one pass is needed
  bool fixed = false;             // as many as there are, whatever was measured: the same each time
  Duration time{};                // that the step may take, unless it takes longer with single rows
};

// 1 where nothing is forced, and at least: so a sequence is never later than if its tokens had been sampled. Else the
// number that is expected to bring most tokens a second. REQUIRES: `decoding` is not empty
TokenCount forced_width(std::span<const Sequence* const> decoding, const StepTime& times, const ForcedRoom& room);

}  // namespace chasqui
