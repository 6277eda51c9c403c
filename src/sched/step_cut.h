// Whether a prefill step may be so long that an urgent arrival would want to cut it. What was computed of a cut step is
// lost, so over time only a part of reading may be lost that way, however often requests arrive. Owned by StepPlan;
// pure.
#pragma once

#include <algorithm>

#include "core/batch.h"
#include "sched/thresholds.h"

namespace chasqui {

class StepCut {
 public:
  // A step that is predicted to take so long may be cut: half of it is lost in the mean.
  bool affords(Duration predicted) const { return !cut_before_ || credit_ >= predicted / 2; }

  // … has been cut since the server was idle: there was company.
  bool cut_before() const { return cut_before_; }

  void ended(const Batch& batch, const BatchResult& result) {
    // A step whose restore has failed was not cut.
    if (batch.cut_by == Batch::kUncut || !result.not_restored.empty()) return;
    if (result.status == DecodeStatus::aborted) {
      cut_before_ = true;
      credit_ = std::max(credit_ - result.compute, Duration::zero());
    } else {
      credit_ = std::min(credit_ + result.compute / kLittle, kSteps * result.compute);
    }
  }

 private:
  // Credit for so many steps at most: arrivals come in crowds.
  static constexpr int kSteps = 2;

  bool cut_before_ = false;
  Duration credit_{};
};

}  // namespace chasqui
