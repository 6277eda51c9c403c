// How many prefill rows may go into one step without making running streams wait longer than the target: learns the
// cost of a prefill row from finished steps. Owned by the Scheduler; pure.
#pragma once

#include "base/clock.h"
#include "core/types.h"

namespace chasqui {

class PrefillBudget {
 public:
  PrefillBudget(Duration target, TokenCount rows_max) : target_(target), rows_max_(rows_max) {}

  // Rows for the next prefill step. With nobody decoding, nobody waits: as many as the batch holds.
  TokenCount rows(bool streams_running) const;
  // A prefill step of `rows` rows took `compute`.
  void observe(TokenCount rows, Duration compute);

 private:
  const Duration target_;
  const TokenCount rows_max_;
  double seconds_per_row_ = 0;  // moving average; 0: nothing measured yet
};

}  // namespace chasqui
