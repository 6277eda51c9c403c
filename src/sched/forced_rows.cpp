#include "sched/forced_rows.h"

#include <algorithm>

namespace chasqui {
namespace {

// Of one sequence in one step.
constexpr TokenCount kMost = 32;
// Another width must bring so many times the tokens a second: libllama builds its graph anew for it.
constexpr double kBetter = 1.05;
// Rows beyond those of a batch that was seen are taken to cost this share of them, until they are tried.
constexpr double kUnseenRow = 0.5;

// As a decode step, or as rows of prompts, whichever was seen.
double seconds_of(const StepTime& times, StepSize size) {
  for (const auto kind : {Batch::Kind::decode, Batch::Kind::prefill}) {
    if (times.seen(kind, size.rows)) return to_seconds(times.predict(kind, size));
  }
  const TokenCount known = std::max(times.seen_below(Batch::Kind::decode, size.rows), 1);
  const double takes = to_seconds(times.predict(Batch::Kind::decode, {known, size.deepest}));
  return takes * (1 + kUnseenRow * (size.rows - known) / known);
}

}  // namespace

TokenCount forced_width(std::span<const Sequence* const> decoding, const StepTime& times, const ForcedRoom& room) {
  const auto streams = static_cast<TokenCount>(decoding.size());
  TokenCount most = 1;
  TokenCount widest = std::min(kMost, room.rows / streams);
  TokenCount deepest = 0;
  for (const Sequence* sequence : decoding) {
    most = std::max(most, sequence->left_in_piece());
    widest = std::min(widest, room.cells_per_slot - sequence->computed());
    deepest = std::max(deepest, sequence->computed());
  }
  most = std::min(most, widest);
  if (most <= 1) return 1;
  if (room.fixed) return most;
  if (!times.known(Batch::Kind::decode)) return 1;
  const double single = seconds_of(times, {streams, deepest + 1});
  const double limit = std::max(to_seconds(room.time), single);
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
