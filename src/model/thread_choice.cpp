#include "model/thread_choice.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace chasqui {
namespace {

// Weights of the newest observation. What slows a step down for once, such as a burst of requests whose texts are cut
// into tokens meanwhile, says little about the next; that it can be fast says much. With 0.25 for both, a third of the
// steps of the demo model with 64 streams were computed by one thread, though two are 1.6 times as fast.
constexpr double kFasterShare = 0.5;
constexpr double kSlowerShare = 0.1;
// One slow decode is not the end of the world: no observation counts for more than this many times the best cost.
constexpr double kWorst = 8.0;
// A trial that lost time is followed by this many times as much time without one, for any load. Trials with fewer
// threads are what the slowest tokens of a stream wait for, and they find little: strangling is noticed without them.
// Half the speed may be waiting behind one with more.
constexpr double kFewerPause = 2000;
constexpr double kMorePause = 50;
// Steps of more seconds are not computed with fewer threads to try: too much is lost, and strangling is noticed anyway.
// That is so once some load knows two numbers; before, all that is known may come from strangled threads.
constexpr double kTrialMost = 0.050;

// A step that takes this many times what is expected is being strangled: it is cut, or, if it ended before that, it
// was the last one with so many threads. The least seconds are what a busy but fair machine may take from any step.
constexpr double kCutTimes = 3.0;
constexpr double kCutLeast = 0.020;
constexpr double kSlowTimes = 2.5;
constexpr double kSlowLeast = 0.010;

// A higher ceiling is kept when the step took at most so many times what the lower one takes, and its trial is cut at a
// little more: whether more threads gain anything is for each load to find out.
constexpr double kRaiseTimes = 1.25;
constexpr double kRaiseLeast = 0.002;
constexpr double kRaiseCutTimes = 1.5;
constexpr double kRaiseCutLeast = 0.005;
constexpr Duration kPauseLeast = milliseconds(50);
constexpr Duration kPauseMost = seconds(4);
// … but trials that fail take at most a twentieth of the time.
constexpr double kRaisePause = 20;

// Attention makes deep rows dearer than shallow ones. Every this many cells count as much as all the rest of a row,
// which is more than they cost in models of any size: a deep step must not look strangled.
constexpr double kDepth = 512;

std::vector<std::int32_t> halvings(std::int32_t most) {
  std::vector<std::int32_t> numbers;
  for (std::int32_t n = std::max(most, 1); n > 0; n /= 2) numbers.push_back(n);
  return numbers;
}

Duration to_duration(double spent) {
  return from_seconds(spent);
}

// All rows of a pass look back as far as the deepest.
double deepest(const Batch& batch) {
  TokenCount most = 0;
  for (const Row& row : batch.rows) most = std::max(most, row.position);
  return most;
}

}  // namespace

ThreadChoice::ThreadChoice(std::int32_t one_row, std::int32_t more_rows)
    : one_row_(halvings(one_row)),
      more_rows_(halvings(more_rows)),
      most_(std::max(one_row_.front(), more_rows_.front())),
      ceiling_(most_) {
  for (auto& sizes : loads_) {
    for (std::size_t size = 0; size < kSizes; ++size) {
      sizes[size].numbers = size == 0 ? one_row_ : more_rows_;
      sizes[size].costs.assign(sizes[size].numbers.size(), 0.0);
    }
  }
}

ThreadChoice::Load& ThreadChoice::load_of(const Batch& batch) {
  const std::size_t rows = std::max<std::size_t>(batch.rows.size(), 1);
  const auto size = std::min<std::size_t>(std::bit_width(rows - 1), kSizes - 1);
  rows_ = static_cast<double>(rows);
  depth_ = deepest(batch);
  decode_ = batch.kind == Batch::Kind::decode;
  return loads_[decode_ ? 0 : 1][size];
}

ThreadPlan ThreadChoice::choose(const Batch& batch, TimePoint now, std::int32_t allowed) {
  allowed_ = std::max(allowed, 1);
  Load& load = load_of(batch);
  // What was best for the batch before is the first estimate for one of a new kind.
  if (load_ != nullptr && load.costs[load.best] == 0) {
    const std::int32_t before = load_->numbers[load_->best];
    load.best = 0;
    if (before != load_->numbers.front()) {
      while (load.numbers[load.best] > before) ++load.best;
    }
  }
  load_ = &load;
  pick(now);
  // A decode step is short. Others try a higher ceiling only where there is no such step for long.
  if (trial_ == Trial::ceiling && batch.kind != Batch::Kind::decode && now < next_raise_ + pause_) {
    trial_ = Trial::none;
    ++chosen_;
  }
  return plan();
}

void ThreadChoice::forget(const Batch& batch) { std::ranges::fill(load_of(batch).costs, 0.0); }

ThreadPlan ThreadChoice::choose_exactly(const Batch& batch, std::int32_t threads) {
  load_ = &load_of(batch);
  const auto found = std::ranges::find(load_->numbers, threads);
  CHECK(found != load_->numbers.end(), "a number of threads that is no choice");
  chosen_ = static_cast<std::size_t>(found - load_->numbers.begin());
  trial_ = Trial::none;
  return plan();
}

// The best number below the limit, or one of its neighbours when its trial is due.
void ThreadChoice::pick(TimePoint now) {
  const Load& load = *load_;
  chosen_ = load.best;
  trial_ = Trial::none;
  while (load.numbers[chosen_] > limit()) ++chosen_;
  if (load.costs[chosen_] == 0) return;
  const bool may_have_more = chosen_ > 0 && load.numbers[chosen_ - 1] <= allowed_;
  if (may_have_more && load.numbers[chosen_ - 1] > ceiling_ && now >= next_raise_) {
    trial_ = Trial::ceiling;
    --chosen_;
  } else if (chosen_ != load.best) {
    return;
  } else if (chosen_ + 1 < load.numbers.size() && now >= next_fewer_ &&
             (!compared_ || expect(load.numbers[chosen_]) < kTrialMost)) {
    trial_ = Trial::fewer;
    ++chosen_;
  } else if (may_have_more && load.numbers[chosen_ - 1] <= ceiling_ && now >= next_more_) {
    trial_ = Trial::more;
    --chosen_;
  }
}

// Seconds for a row, rather too much than too little; 0: nothing is known.
double ThreadChoice::expect(const Load& load, std::int32_t threads) const {
  double least = 0;
  for (std::size_t i = 0; i < load.costs.size(); ++i) {
    if (load.costs[i] == 0) continue;
    if (load.numbers[i] == threads) return load.costs[i];
    // Fewer threads take longer, at most in proportion; more take no longer on free cores.
    const double cost = load.costs[i] * std::max(1.0, static_cast<double>(load.numbers[i]) / threads);
    least = least == 0 ? cost : std::min(least, cost);
  }
  return least;
}

// Seconds for the batch. What was never seen takes at most what a larger batch takes, or many small ones.
double ThreadChoice::expect(std::int32_t threads) const {
  const auto deeper = [this](const Load& load) { return std::max(1.0, (depth_ + kDepth) / (load.depth + kDepth)); };
  if (const double cost = expect(*load_, threads); cost > 0) return cost * rows_ * deeper(*load_);
  double least = 0;
  // Rows that are decoded have an output, which others have not: they take at least as long, and often twice.
  const auto& loads = loads_[decode_ ? 0 : 1];
  for (std::size_t size = 0; size < kSizes; ++size) {
    const double cost = expect(loads[size], threads);
    if (cost == 0) continue;
    const double rows = std::max(rows_, static_cast<double>(std::size_t{1} << size));
    const double all = cost * rows * deeper(loads[size]);
    least = least == 0 ? all : std::min(least, all);
  }
  return least;
}

ThreadPlan ThreadChoice::plan() {
  const std::int32_t threads = load_->numbers[chosen_];
  expected_ = expect(threads);
  if (threads == 1 || expected_ == 0) return {threads, Duration::max()};
  if (trial_ == Trial::ceiling) {
    const double lower = expect(load_->numbers[chosen_ + 1]);
    return {threads, to_duration(std::max(kRaiseCutTimes * lower, kRaiseCutLeast))};
  }
  return {threads, to_duration(std::max(kCutTimes * expected_, kCutLeast))};
}

void ThreadChoice::observe(Duration took, TimePoint now) {
  CHECK(load_ != nullptr, "observe() without choose()");
  const double spent = to_seconds(took);
  const bool meet = load_->numbers[chosen_] > 1;
  if (trial_ == Trial::ceiling) return finish_ceiling_trial(spent, false, now);
  if (trial_ == Trial::none && meet && expected_ > 0 && spent > std::max(kSlowTimes * expected_, kSlowLeast)) {
    return lower_ceiling(now);
  }
  learn(spent, now);
}

void ThreadChoice::learn(double spent, TimePoint now) {
  Load& load = *load_;
  const double best = load.costs[load.best];
  double cost = spent / rows_;
  if (best > 0) cost = std::min(cost, kWorst * best);
  double& smooth = load.costs[chosen_];
  const double share = smooth == 0 ? 1.0 : cost < smooth ? kFasterShare : kSlowerShare;
  load.depth += share * (depth_ - load.depth);
  smooth += share * (cost - smooth);

  if (trial_ != Trial::none) {
    // Without a pause when it won: it may be the better choice from now on.
    const double lost = std::max(spent - best * rows_, 0.0);
    if (trial_ == Trial::fewer) next_fewer_ = now + to_duration(kFewerPause * lost);
    if (trial_ == Trial::more) next_more_ = now + to_duration(kMorePause * lost);
  }
  for (std::size_t i = 0; i < load.costs.size(); ++i) {
    if (load.costs[i] == 0) continue;
    compared_ |= i != chosen_;
    if (load.costs[load.best] == 0 || load.costs[i] < load.costs[load.best]) load.best = i;
  }
}

ThreadPlan ThreadChoice::cut(Duration spent, TimePoint now) {
  CHECK(load_ != nullptr && load_->numbers[chosen_] > 1, "nothing to cut");
  switch (trial_) {
    case Trial::ceiling: finish_ceiling_trial(to_seconds(spent), true, now); break;
    case Trial::more: learn(to_seconds(spent), now); break;
    default: lower_ceiling(now);
  }
  trial_ = Trial::none;
  ++chosen_;
  while (load_->numbers[chosen_] > limit()) ++chosen_;
  return plan();
}

void ThreadChoice::finish_ceiling_trial(double spent, bool cut, TimePoint now) {
  const double lower = expect(load_->numbers[chosen_ + 1]);
  if (cut || spent > std::max(kRaiseTimes * lower, kRaiseLeast)) {
    pause_ = std::min(2 * pause_, kPauseMost);
    next_raise_ = now + std::max(pause_, to_duration(kRaisePause * spent));
    return;
  }
  ceiling_ = load_->numbers[chosen_];
  next_raise_ = now;
  if (ceiling_ == most_) calm_since_ = now;
  // What was learned before may be out of date; this is not.
  load_->costs[chosen_] = 0;
  trial_ = Trial::none;
  learn(spent, now);
}

void ThreadChoice::lower_ceiling(TimePoint now) {
  const bool was_calm = ceiling_ == most_;
  if (was_calm) {
    // A calm that was shorter than the pause before it was none.
    const bool again = now - calm_since_ < pause_;
    pause_ = again ? std::min(2 * pause_, kPauseMost) : kPauseLeast;
  }
  ceiling_ = load_->numbers[chosen_ + 1];
  next_raise_ = now + pause_;
}

}  // namespace chasqui
