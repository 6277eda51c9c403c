// The acceptance rate: the chance that a draft token is accepted when all before it were, from those that came to be
// known, the newest ones first. Pure value.
#pragma once

#include "core/types.h"
#include "sched/thresholds.h"

namespace chasqui {

class Acceptance {
 public:
  // Until something is known of it, it is expected to be as `before` was.
  explicit Acceptance(double before) : known_(kBefore), right_(kBefore * before) {}

  double chance() const { return right_ / known_; }

  // So many draft tokens in a row were accepted, and the next one was rejected or is not known.
  void observe(TokenCount right, bool then_wrong) {
    const double count = right + (then_wrong ? 1 : 0);
    // Each of them makes those before it matter less.
    double weight = 1;
    for (double i = 0; i < count; ++i) weight *= kFading;
    known_ = weight * known_ + count;
    right_ = weight * right_ + right;
  }

  // How many of `draft_tokens` are expected to be accepted, up to the first rejected one.
  double expected(TokenCount draft_tokens) const {
    double all = 0;
    double chance_of = 1;
    for (TokenCount i = 0; i < draft_tokens; ++i) all += chance_of *= chance();
    return all;
  }

 private:
  static constexpr double kBefore = 2;  // draft tokens that the expectation weighs as much as

  double known_;
  double right_;
};

}  // namespace chasqui
