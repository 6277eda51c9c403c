// What tries: now and then a step has the width that may bring more than the best that is known, since what is not
// tried is not measured. Trials may take a share of all time (TrialCredit). Owned by Speculation; pure.
#pragma once

#include "sched/draft_width.h"
#include "sched/trial_credit.h"

namespace chasqui {

class WidthTrials {
 public:
  struct Next {
    TokenCount width = 1;
    bool trial = false;
  };

  // Of the step that is planned next. `unprepared`: no draft tokens can be made before the heads have learned.
  Next next(const WidthChoice& choice, bool unprepared) {
    prepares_ &= choice.hopes;
    if (steps_ == 0 && choice.hopes && (credit_.enough() || prepares_)) {
      prepares_ = unprepared;
      if (!prepares_) {
        steps_ = kSteps;
        width_ = choice.hoped.width;
      }
    }
    const bool trial = steps_ > 0 && width_ <= choice.reachable;
    steps_ = trial ? steps_ - 1 : 0;
    return {trial ? width_ : choice.best.width, trial};
  }
  // There would be a trial, if the heads had learned something.
  bool prepares() const { return prepares_; }
  // See TrialCredit.
  void spend(double spent, double lost) { credit_.spend(spent, lost); }

 private:
  // Of the same width, since in the first of them libllama builds its graph anew.
  static constexpr int kSteps = 2;

  TrialCredit credit_;
  TokenCount width_ = 1;
  int steps_ = 0;  // that are left of a trial
  bool prepares_ = false;
};

}  // namespace chasqui
