#include "model/thread_choice.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace chasqui {
namespace {

constexpr double kNewShare = 0.25;  // weight of the newest observation
// One slow decode is not the end of the world: no observation counts for more than this many times the best cost.
constexpr double kWorst = 8.0;
// A trial that lost time is followed by this many times as much time without one, so trials cost 2 %.
constexpr int kTrialPause = 50;

std::vector<std::int32_t> halvings(std::int32_t most) {
  std::vector<std::int32_t> numbers;
  for (std::int32_t n = std::max(most, 1); n > 0; n /= 2) numbers.push_back(n);
  return numbers;
}

}  // namespace

ThreadChoice::ThreadChoice(std::int32_t most) : numbers_(halvings(most)) {
  for (auto& sizes : loads_) {
    for (Load& load : sizes) load.costs.assign(numbers_.size(), 0.0);
  }
}

// The best number, or one of its neighbours when its trial is due.
std::size_t ThreadChoice::pick(const Load& load, TimePoint now) const {
  if (load.costs[load.best] == 0) return load.best;
  if (load.best + 1 < numbers_.size() && now >= load.next_fewer) return load.best + 1;
  if (load.best > 0 && now >= next_more_) return load.best - 1;
  return load.best;
}

std::int32_t ThreadChoice::choose(Batch::Kind kind, std::size_t rows, TimePoint now) {
  rows_ = std::max<std::size_t>(rows, 1);
  const auto size = std::min<std::size_t>(std::bit_width(rows_ - 1), kSizes - 1);
  Load& load = loads_[kind == Batch::Kind::decode ? 0 : 1][size];
  // What was best for the batch before is the first guess for one of a new kind.
  if (load_ != nullptr && load.costs[load.best] == 0) load.best = load_->best;
  load_ = &load;
  chosen_ = pick(load, now);
  return numbers_[chosen_];
}

void ThreadChoice::observe(Duration took, TimePoint now) {
  CHECK(load_ != nullptr, "observe() without choose()");
  Load& load = *load_;
  const double spent = to_seconds(took);
  const double best = load.costs[load.best];
  double cost = spent / static_cast<double>(rows_);
  if (best > 0) cost = std::min(cost, kWorst * best);
  double& smooth = load.costs[chosen_];
  smooth = smooth > 0 ? smooth + kNewShare * (cost - smooth) : cost;

  if (chosen_ != load.best) {
    // Without a pause when it won: it may be the better choice from now on.
    const double lost = std::max(spent - best * static_cast<double>(rows_), 0.0);
    const auto pause = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(kTrialPause * lost));
    (chosen_ > load.best ? load.next_fewer : next_more_) = now + pause;
  }
  for (std::size_t i = 0; i < load.costs.size(); ++i) {
    if (load.costs[i] > 0 && load.costs[i] < load.costs[load.best]) load.best = i;
  }
}

}  // namespace chasqui
