// What the newest answers were like, which says what the next may be: how many tokens they had, whether they ended by
// their limit, how long they held their slots. Owned by the Scheduler; pure.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "core/types.h"
#include "sched/thresholds.h"

namespace chasqui {

class RecentAnswers {
 public:
  // One has ended with `tokens`, after it held its slot for so long. `limit`: the client had set one; `limited`: that
  // ended it.
  void ended(TokenCount tokens, bool limit, bool limited, Duration held);

  // How many tokens one will still say that has said `said` and may say `most` more. `limit`: the client has set that.
  double left(TokenCount said, TokenCount most, bool limit) const;
  // How long a slot is held; 0: not known yet.
  double slot_seconds() const { return slot_seconds_; }

 private:
  std::array<TokenCount, kTelling> newest_{};     // lengths of those that ended by themselves, in a ring
  std::array<TokenCount, kTelling> sorted_{};     // … and from short to long
  std::array<std::int64_t, kTelling + 1> sum_{};  // … of those from this one on
  std::size_t count_ = 0;
  double limited_ = 0;  // the share that its limit ends, of those that have one
  bool limits_seen_ = false;
  double slot_seconds_ = 0;
};

}  // namespace chasqui
