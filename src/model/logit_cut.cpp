#include "model/logit_cut.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chasqui {
namespace {

// Where a sample of a row says no better than so what all of it weighs, a sweep more is quicker than a long list.
constexpr double kLargeError = 0.04;
// Standard deviations that a sample may be wrong by: what comes of more costs little, or much.
constexpr double kDeviations = 2.5;
constexpr double kManyDeviations = 4;
// A row of so few tokens is summed up in a microsecond or two.
constexpr std::size_t kQuickToCount = 65536;
constexpr std::size_t kQuickToWeigh = 8192;

// More than the tokens below `bound` weigh.
double most_below(const LogitRow& row, float bound, float scale) {
  return static_cast<double>(row.size()) * static_cast<double>(std::exp((bound - row.top()) * scale));
}

// Halves the range in which the answer lies.
std::size_t count_by_halves(std::span<Candidate> candidates, double mass) {
  constexpr std::size_t kSorted = 128;
  std::size_t begin = 0;  // everything before is taken and counted
  std::size_t end = candidates.size();
  while (end - begin > kSorted) {
    const std::size_t middle = begin + (end - begin) / 2;
    const auto at = [&](std::size_t i) { return candidates.begin() + static_cast<std::ptrdiff_t>(i); };
    std::nth_element(at(begin), at(middle), at(end), more_likely);
    double half = 0;
    for (std::size_t i = begin; i < middle; ++i) half += candidates[i].probability;
    if (half >= mass) {
      end = middle;
    } else {
      mass -= half;
      begin = middle;
    }
  }
  std::ranges::sort(candidates.subspan(begin, end - begin), more_likely);
  for (; begin < end && mass > 0; ++begin) mass -= candidates[begin].probability;
  return begin;
}

// A partition without branches, which would be mispredicted half of the time. Returns how many are wanted.
template <class Wanted>
std::size_t put_first(std::span<Candidate> candidates, const Wanted& wanted) {
  std::size_t first = 0;
  for (Candidate& each : candidates) {
    const Candidate candidate = each;
    const bool is_wanted = wanted(candidate);
    each = candidates[first];
    candidates[first] = candidate;
    first += is_wanted ? 1 : 0;
  }
  return first;
}

}  // namespace

// Sums the weights by classes of about equal logits, so that only the class in which the mass is reached is sorted.
std::size_t count_for_mass(std::span<Candidate> candidates, float top, double mass) {
  constexpr std::size_t kFew = 512;
  constexpr std::size_t kClasses = 512;
  if (candidates.size() <= kFew) return count_by_halves(candidates, mass);
  const float least = std::ranges::min_element(candidates, {}, &Candidate::logit)->logit;
  const float range = std::clamp(top - least, 1e-30f, 32.0f);
  const float classes_for_one = static_cast<float>(kClasses - 1) / range;
  const auto class_of = [&](const Candidate& c) {
    return static_cast<std::size_t>(std::min((top - c.logit) * classes_for_one, static_cast<float>(kClasses - 1)));
  };
  std::array<double, kClasses> weights{};
  for (const Candidate& c : candidates) weights[class_of(c)] += c.probability;
  std::size_t last = 0;
  while (last + 1 < kClasses && weights[last] < mass) mass -= weights[last++];
  const auto is_above = [&](const Candidate& c) { return class_of(c) < last; };
  const auto is_last = [&](const Candidate& c) { return class_of(c) == last; };
  const std::size_t above = put_first(candidates, is_above);
  const std::span<Candidate> others = candidates.subspan(above);
  return above + count_by_halves(others.first(put_first(others, is_last)), mass);
}

Candidate LogitCut::reach_part(LogitRow& row, float floor, double part, float scale) {
  if (floor > LogitRow::kLeast && row.size() <= kQuickToWeigh) {
    const double all = row.mass(floor, scale);
    return halve(row, floor, scale, all, all * part);
  }
  const float bound = std::max(floor, row.bound_of(LogitRow::kLikely));
  const double likely = collect(row, bound, LogitRow::kNoHigh, scale);
  if (!(bound > floor)) return last_of(row, row.top(), likely * part);
  if (const auto last = last_of_likely(row, likely, likely + most_below(row, bound, scale), part)) return *last;
  const double rest = estimate(row, bound, floor, scale);
  if (estimate_.error > kLargeError) {
    const double all = row.mass(floor, scale);
    const double target = all * part;
    if (likely >= target) return last_of(row, row.top(), target);
    estimate_.scale((all - likely) / rest);
    const float middle = expected(floor, target - likely);
    return near(row, floor, bound, scale, target, middle, row.mass(middle, scale));
  }
  const float middle = expected(floor, (likely + rest) * part - likely);
  const LogitRow::Masses sums = row.masses(floor, scale, middle);
  const double target = sums.all * part;
  if (likely >= target) return last_of(row, row.top(), target);
  return near(row, floor, bound, scale, target, middle, sums.above);
}

// Of the list, where it is the same whatever the others weigh: all tokens weigh from `least` to `most`.
std::optional<Candidate> LogitCut::last_of_likely(LogitRow& row, double least, double most, double part) {
  if (!(most * part < least)) return std::nullopt;
  const Candidate last = last_of(row, row.top(), least * part);
  double reached = 0;
  for (const Candidate& c : list_) reached += more_likely(last, c) ? 0.0 : c.probability;
  return reached >= most * part ? std::optional(last) : std::nullopt;
}

bool LogitCut::surely_within(LogitRow& row, float floor, double part, float logit) {
  const float bound = std::max(floor, row.bound_of(LogitRow::kLikely));
  if (!(bound > floor && logit >= bound)) return false;
  const double likely = collect(row, bound, LogitRow::kNoHigh, 1.0f);
  double above = 0;
  for (const Candidate& c : list_) above += c.logit >= logit ? c.probability : 0.0;
  return above <= likely * part;
}

std::optional<LogitCut::Around> LogitCut::around_part(LogitRow& row, float floor, double part) {
  const float bound = std::max(floor, row.bound_of(LogitRow::kLikely));
  if (!(bound > floor)) return std::nullopt;
  const double likely = collect(row, bound, LogitRow::kNoHigh, 1.0f);
  if ((likely + most_below(row, bound, 1.0f)) * part < likely) return std::nullopt;
  const double needed = (likely + estimate(row, bound, floor, 1.0f, true)) * part - likely;
  const double error = kDeviations * doubt(needed, part);
  if (!(needed > error)) return std::nullopt;
  Around around;
  around.low = expected(floor, needed + error);
  around.high = std::max(around.low, expected(floor, needed - error));
  const LogitRow::Masses masses = row.masses(floor, 1.0f, around.low, around.high);
  around.higher = masses.higher;
  around.target = masses.all * part;
  if (!(masses.higher < around.target && masses.above >= around.target)) return std::nullopt;
  return around;
}

Candidate LogitCut::reach(LogitRow& row, const Around& around) {
  collect(row, around.low, around.high, 1.0f);
  return last_of(row, around.high, around.target - around.higher);
}

Candidate LogitCut::reach_count(LogitRow& row, float floor, double count) {
  const auto all_reach = [this, floor] {
    ties_.clear();
    return last_ = {std::numeric_limits<Token>::max(), floor, 0.0};
  };
  if (floor > LogitRow::kLeast && row.size() <= kQuickToCount) {
    const double all = row.mass(floor, 0.0f);
    return all <= count ? all_reach() : halve(row, floor, 0.0f, all, count);
  }
  const float bound = std::max(floor, row.bound_of(LogitRow::kLikely));
  const double likely = collect(row, bound, LogitRow::kNoHigh, 0.0f);
  if (likely >= count || !(bound > floor)) return last_of(row, row.top(), count);
  estimate(row, bound, floor, 0.0f);
  const float middle = expected(floor, count - likely);
  const LogitRow::Masses there = row.masses(floor, 0.0f, middle);
  if (there.all <= count) return all_reach();
  return near(row, floor, bound, 0.0f, count, middle, there.above);
}

float LogitCut::about_count(LogitRow& row, double count) {
  const float bound = row.bound_of(LogitRow::kLikely);
  const double likely = collect(row, bound, LogitRow::kNoHigh, 0.0f);
  if (likely >= count || !(bound > LogitRow::kLeast)) return bound;
  estimate(row, bound, LogitRow::kLeast, 0.0f, true);
  return expected(LogitRow::kLeast, count - likely + kManyDeviations * doubt(count - likely, 0));
}

// As last_of(), of what is at least `floor`: that weighs `all`.
Candidate LogitCut::halve(LogitRow& row, float floor, float scale, double all, double target) {
  constexpr int kHalvings = 10;
  float low = floor;
  float high = LogitRow::kNoHigh;
  float end = row.top();
  double above = 0;  // what those from `high` on weigh
  for (int i = 0; i < kHalvings && all > target; ++i) {
    const float middle = low / 2 + end / 2;
    if (!(middle > low && middle < end)) break;
    const double sum = row.mass(middle, scale);
    if (sum < target) {
      high = end = middle;
      above = sum;
    } else {
      low = middle;
    }
  }
  collect(row, low, high, scale);
  if (!list_.empty()) return last_of(row, end, target - above);
  collect(row, low, LogitRow::kNoHigh, scale);  // sums are rounded
  return last_of(row, row.top(), target);
}

// Of the list, none of which is above `high`, so many that they weigh `target`.
Candidate LogitCut::last_of(LogitRow& row, float high, double target) {
  ties_.clear();
  last_ = {row.largest(), row.top(), 0.0};
  if (list_.empty()) return last_;
  const std::size_t count = count_for_mass(list_, high, target);
  last_ = count > 0 ? list_[count - 1] : *std::ranges::min_element(list_, more_likely);
  for (std::size_t i = count; i < list_.size(); ++i) {
    if (list_[i].logit == last_.logit && list_[i].token > last_.token) ties_.push_back(list_[i]);
  }
  return last_;
}

// Lists the tokens around the one with which the target is reached, which is expected at `middle`: those that are at
// least that weigh `sum`, and what is missing, or too much, says how far away it is. Where there is none around it, it
// is the last of those above: sums are rounded.
Candidate LogitCut::near(LogitRow& row, float floor, float bound, float scale, double target, float middle,
                         double sum) {
  constexpr double kMore = 1.25;
  const bool below = sum < target;
  const double density = std::max(this->density(middle), 1e-30);
  auto width = static_cast<float>(std::min(kMore * std::abs(target - sum) / density, 1e30));
  width = std::max(width, estimate_.width / 16);
  for (;; width *= 4) {
    const float low = below ? std::max(floor, middle - width) : middle;
    const float high = below ? middle : std::min(bound, middle + width);
    const double listed = collect(row, low, high, scale);
    const bool found = below ? sum + listed >= target || !(low > floor) : sum - listed < target || !(high < bound);
    if (!found) continue;
    if (!list_.empty()) return last_of(row, high, target - (below ? sum : sum - listed));
    collect(row, middle, LogitRow::kNoHigh, scale);
    return last_of(row, row.top(), target);
  }
}

// Those that are at least `low` and below `high`, with their weights. Returns the sum.
double LogitCut::collect(LogitRow& row, float low, float high, float scale) {
  row.at_least(low, list_, high);
  logits_.resize(list_.size());
  for (std::size_t i = 0; i < list_.size(); ++i) logits_[i] = list_[i].logit;
  const std::span<const float> weights = row.weights(logits_, scale);
  double sum = 0;
  for (std::size_t i = 0; i < list_.size(); ++i) sum += list_[i].probability = static_cast<double>(weights[i]);
  return sum;
}

// Returns about what the tokens from `floor` to below `bound` weigh.
double LogitCut::estimate(LogitRow& row, float bound, float floor, float scale, bool doubts) {
  constexpr std::size_t kSample = 4096;
  constexpr float kWidest = 48;
  const std::span<const float> sample = row.sample(kSample);
  const std::span<const float> weights = row.weights(sample, scale);
  float least = bound;
  for (const float logit : sample) least = logit >= floor && logit < least ? logit : least;
  estimate_.bound = bound;
  estimate_.width = std::clamp(bound - least, 1e-6f, kWidest) / static_cast<float>(kClasses - 1);
  estimate_.weights.fill(0);
  if (doubts) estimate_.squares.fill(0);
  const float classes_for_one = 1 / estimate_.width;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (!(sample[i] >= floor && sample[i] < bound)) continue;
    const auto of = std::min((bound - sample[i]) * classes_for_one, static_cast<float>(kClasses - 1));
    const auto weight = static_cast<double>(weights[i]);
    estimate_.weights[static_cast<std::size_t>(of)] += weight;
    if (doubts) estimate_.squares[static_cast<std::size_t>(of)] += weight * weight;
    sum += weight;
    squares += weight * weight;
  }
  const double ratio = static_cast<double>(row.size()) / static_cast<double>(std::max<std::size_t>(1, sample.size()));
  estimate_.scale(ratio);
  if (doubts) {
    for (double& square : estimate_.squares) square *= ratio * ratio;
  }
  estimate_.error = sum > 0 ? std::sqrt(squares) / sum : 0;
  return sum * ratio;
}

// Where the weights from the bound on down add up to `needed`.
float LogitCut::expected(float floor, double needed) const {
  if (!(needed > 0)) return estimate_.bound;
  std::size_t of = 0;
  for (; of + 1 < kClasses && estimate_.weights[of] < needed; ++of) needed -= estimate_.weights[of];
  const double inside = estimate_.weights[of] > 0 ? std::min(needed / estimate_.weights[of], 1.0) : 0.0;
  return std::max(floor, estimate_.bound - (static_cast<float>(of) + static_cast<float>(inside)) * estimate_.width);
}

// The standard deviation of what has to be reached, `needed` of it below the bound, if that is a part of all: too much
// above where it is expected counts by what is left out, and too much below by what is not.
double LogitCut::doubt(double needed, double part) const {
  double above = 0;
  double below = 0;
  for (std::size_t of = 0; of < kClasses; ++of) {
    (needed > 0 ? above : below) += estimate_.squares[of];
    needed -= estimate_.weights[of];
  }
  return std::sqrt((1 - part) * (1 - part) * above + part * part * below);
}

// How much all that is about as likely weighs, for a difference of 1 between logits.
double LogitCut::density(float logit) const {
  constexpr std::ptrdiff_t kAround = 4;
  const auto of =
      static_cast<std::ptrdiff_t>(std::min((estimate_.bound - logit) / estimate_.width, float{kClasses - 1}));
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, of - kAround);
  const std::ptrdiff_t end = std::min<std::ptrdiff_t>(kClasses, of + kAround + 1);
  double sum = 0;
  for (std::ptrdiff_t i = first; i < end; ++i) sum += estimate_.weights[static_cast<std::size_t>(i)];
  return sum / (static_cast<double>(end - first) * static_cast<double>(estimate_.width));
}

void LogitCut::ban_after(LogitRow& row, const Candidate& last) {
  if (last.token != last_.token) {
    const bool largest = last.logit >= LogitRow::kMost;
    const float next = std::nextafter(last.logit, std::numeric_limits<float>::infinity());
    row.at_least(last.logit, ties_, largest ? LogitRow::kNoHigh : next);
  }
  for (const Candidate& c : ties_) {
    if (c.token <= last.token) continue;
    banned_.push_back({c.token, row[c.token], 0.0});
    row.set(c.token, LogitRow::kBanned);
  }
}

void LogitCut::take_back(LogitRow& row) {
  for (auto c = banned_.rbegin(); c != banned_.rend(); ++c) row.set(c->token, c->logit);
  forget();
}

void LogitCut::forget() {
  banned_.clear();
  ties_.clear();
  last_ = {-1, 0, 0};
}

}  // namespace chasqui
