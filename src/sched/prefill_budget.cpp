#include "sched/prefill_budget.h"

#include <algorithm>

namespace chasqui {
namespace {

// Below this a step is all overhead, and a long prompt would never end.
constexpr TokenCount kRowsMin = 16;
// Before the first measurement: a guess that no model of today's sizes turns into a stall of seconds.
constexpr TokenCount kRowsFirst = 64;
// Weight of the newest step. High enough to follow the growing cost of a long context within a few chunks.
constexpr double kNewest = 0.3;

}  // namespace

TokenCount PrefillBudget::rows(bool streams_running) const {
  if (!streams_running) return rows_max_;
  const TokenCount floor = std::min(kRowsMin, rows_max_);
  if (seconds_per_row_ <= 0) return std::min(kRowsFirst, rows_max_);
  const double rows = to_seconds(target_) / seconds_per_row_;
  return static_cast<TokenCount>(std::clamp(rows, static_cast<double>(floor), static_cast<double>(rows_max_)));
}

void PrefillBudget::observe(TokenCount rows, Duration compute) {
  // A step of a few rows is dominated by its fixed cost and says little about a row.
  if (rows < kRowsMin || compute <= Duration::zero()) return;
  const double sample = to_seconds(compute) / rows;
  seconds_per_row_ = seconds_per_row_ > 0 ? (1 - kNewest) * seconds_per_row_ + kNewest * sample : sample;
}

}  // namespace chasqui
