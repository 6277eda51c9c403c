#include "sched/forced_rows.h"

#include <algorithm>

#include "sched/thresholds.h"

namespace chasqui {
namespace {

// Of one sequence in one step.
constexpr TokenCount kMost = 32;
// A step in which one sequence has nothing forced may take so many times what it takes with single rows: that sequence
// gets one token of it in any case. Rows that cost more bring as much in the next step.
constexpr double kOthersWait = 1.2;

// As a decode step, or as rows of prompts, whichever was seen.
double seconds_of(const StepTime& times, StepSize size) {
  const auto seen = [&](Batch::Kind kind) { return times.seen(kind, size.rows); };
  if (seen(Batch::Kind::decode) || !seen(Batch::Kind::prefill)) return times.decode_seconds(size);
  return to_seconds(times.predict(Batch::Kind::prefill, size));
}

}  // namespace

TokenCount forced_width(std::span<const Sequence* const> decoding, const StepTime& times, const ForcedRoom& room) {
  const auto streams = static_cast<TokenCount>(decoding.size());
  TokenCount most = 1;
  TokenCount widest = std::min(kMost, room.rows / streams);
  TokenCount deepest = 0;
  bool others = false;
  for (const Sequence* sequence : decoding) {
    others = others || sequence->left_in_piece() <= 1;
    most = std::max(most, sequence->left_in_piece());
    widest = std::min(widest, room.cells_per_slot - sequence->computed());
    deepest = std::max(deepest, sequence->computed());
  }
  most = std::min(most, widest);
  if (most <= 1) return 1;
  if (room.fixed) return most;
  if (!times.known(Batch::Kind::decode)) return 1;
  const double single = seconds_of(times, {streams, deepest + 1});
  double limit = std::max(to_seconds(room.time), single);
  if (others) limit = std::min(limit, kOthersWait * single);
  TokenCount best = 1;
  double best_rate = streams / single;
  for (TokenCount width = 2; width <= most; ++width) {
    TokenCount brings = 0;
    for (const Sequence* sequence : decoding) brings += std::min(width, sequence->left_in_piece());
    const double takes = seconds_of(times, {room.even ? streams * width : brings, deepest + width});
    if (takes > limit || brings / takes <= kBetter * best_rate) continue;
    best = width;
    best_rate = brings / takes;
  }
  return best;
}

}  // namespace chasqui
