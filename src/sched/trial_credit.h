// How much time may go into trying what is not expected to be the best: a share of all time, however the trials come
// out. One that lost much is followed by a long time without any. Pure value; owned by WidthTrials.
#pragma once

#include <algorithm>

namespace chasqui {

class TrialCredit {
 public:
  bool enough() const { return seconds_ > 0; }
  // A step took `spent` seconds; `lost` of them would have been saved by what was expected to be the best.
  void spend(double spent, double lost) { seconds_ = std::min(seconds_ + kShare * spent - lost, kMost); }

 private:
  static constexpr double kShare = 0.01;
  static constexpr double kMost = 0.25;  // also what there is at first, when nothing is known

  double seconds_ = kMost;
};

}  // namespace chasqui
