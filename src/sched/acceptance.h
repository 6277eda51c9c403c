// How often guesses are right: the chance that a guess is right when all before it were, from those that came to be
// known, the newest ones first. Pure value.
#pragma once

#include "core/types.h"

namespace chasqui {

class Acceptance {
 public:
  // Until something is known of it, it is expected to be as `before` was.
  explicit Acceptance(double before) : known_(kBefore), right_(kBefore * before) {}

  double chance() const { return right_ / known_; }

  // So many guesses in a row were right, and the next one was wrong or is not known.
  void observe(TokenCount right, bool then_wrong) {
    const double count = right + (then_wrong ? 1 : 0);
    // Each of them makes those before it matter less.
    double weight = 1;
    for (double i = 0; i < count; ++i) weight *= kFade;
    known_ = weight * known_ + count;
    right_ = weight * right_ + right;
  }

  // How many of `guesses` are expected to be right, the first wrong one ending it.
  double expected(TokenCount guesses) const {
    double all = 0;
    double chance_of = 1;
    for (TokenCount i = 0; i < guesses; ++i) all += chance_of *= chance();
    return all;
  }

 private:
  static constexpr double kBefore = 2;   // guesses that the expectation weighs as much as
  static constexpr double kFade = 0.95;  // what was known is forgotten within about twenty guesses

  double known_;
  double right_;
};

}  // namespace chasqui
