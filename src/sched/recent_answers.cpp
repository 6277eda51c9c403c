#include "sched/recent_answers.h"

#include <algorithm>

#include "sched/moving_average.h"

namespace chasqui {
namespace {

void follow(double& average, bool known, double value) { average += (known ? kSlowWeight : 1) * (value - average); }

}  // namespace

void RecentAnswers::ended(TokenCount tokens, bool limit, bool limited, Duration held) {
  follow(slot_seconds_, slot_seconds_ > 0, to_seconds(held));
  if (limit) {
    follow(limited_, limits_seen_, limited ? 1 : 0);
    limits_seen_ = true;
  }
  if (limit && limited) return;
  newest_[count_++ % kTelling] = tokens;
  const std::size_t known = std::min<std::size_t>(count_, kTelling);
  sorted_ = newest_;
  std::sort(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(known));
  sum_[known] = 0;
  for (std::size_t i = known; i-- > 0;) sum_[i] = sum_[i + 1] + sorted_[i];
}

double RecentAnswers::left(TokenCount said, TokenCount most, bool limit) const {
  const std::size_t known = std::min<std::size_t>(count_, kTelling);
  const auto end = sorted_.begin() + static_cast<std::ptrdiff_t>(known);
  const auto longer = std::upper_bound(sorted_.begin(), end, said);
  const auto at = static_cast<std::size_t>(longer - sorted_.begin());
  // What has gone on for longer than all others will probably go on for as long again.
  const double by_itself =
      longer == end ? std::max(said, 1) : static_cast<double>(sum_[at]) / static_cast<double>(known - at) - said;
  const double unlimited = std::min<double>(most, by_itself);
  if (!limit) return unlimited;
  // While no answer has ended, a client that sets a limit is taken to want all of it.
  const double share = limits_seen_ || count_ > 0 ? limited_ : 1;
  return share * most + (1 - share) * unlimited;
}

}  // namespace chasqui
