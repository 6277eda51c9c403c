#include "sched/draft_width.h"

#include "sched/thresholds.h"

namespace chasqui {

WidthChoice choose_width(std::span<const WidthOption> options, const WidthLimits& limits) {
  const auto rate_of = [&](TokenCount width, const WidthOption& option) {
    // A step of another width than the one before takes longer, and so does the one that turns back. A width is
    // expected to be kept for kLittle steps, which have to bring both in again.
    const double turning = width == limits.before ? 0 : 2.0 / kLittle * limits.turn_seconds;
    return option.tokens / (option.seconds + turning);
  };
  WidthChoice choice;
  choice.best = {1, rate_of(1, options.front())};
  choice.hoped = {1, choice.best.rate / options.front().hope};
  for (TokenCount width = 2; width <= static_cast<TokenCount>(options.size()); ++width) {
    const WidthOption& option = options[static_cast<std::size_t>(width - 1)];
    const double rate = rate_of(width, option);
    if (width <= limits.least) {
      choice.best = choice.hoped = {width, rate};
      continue;
    }
    if (option.hope * option.seconds > limits.seconds) continue;
    choice.reachable = width;
    if (rate > option.hope * choice.hoped.rate) choice.hoped = {width, rate / option.hope};
    if (option.seconds <= limits.seconds && rate > kBetter * choice.best.rate && option.seen) {
      choice.best = {width, rate};
    }
  }
  choice.hopes = choice.hoped.width != choice.best.width && choice.hoped.rate > kBetter * choice.best.rate;
  return choice;
}

}  // namespace chasqui
