// Which steps are worth cutting for somebody more urgent: those that only read prompts of background work, and long
// enough that waiting for their end would be felt. What was computed of a cut step is lost, so only a part of the time
// that background work gets may go that way, however often somebody comes. Owned by the Worker; pure, its thread only.
#pragma once

#include <algorithm>

#include "core/batch.h"

namespace chasqui {

class StepCut {
 public:
  bool allows(const Batch& batch) const {
    if (batch.kind != Batch::Kind::prefill || batch.predicted < kFelt || credit_ < batch.predicted / 2) return false;
    return only_background(batch);
  }

  void ended(const Batch& batch, const BatchResult& result) {
    if (batch.kind != Batch::Kind::prefill || !only_background(batch)) return;
    if (result.status == DecodeStatus::aborted) {
      credit_ = std::max(credit_ - result.compute, Duration::zero());
    } else {
      credit_ = std::min(credit_ + result.compute / kPart, kMost);
    }
  }

 private:
  static constexpr Duration kFelt = milliseconds(40);
  static constexpr int kPart = 4;  // one part in so many may be lost
  static constexpr Duration kMost = seconds(2);

  static bool only_background(const Batch& batch) {
    return std::all_of(batch.parts.begin(), batch.parts.end(),
                       [](const BatchPart& part) { return part.request->service_class == ServiceClass::background; });
  }

  Duration credit_{};
};

}  // namespace chasqui
