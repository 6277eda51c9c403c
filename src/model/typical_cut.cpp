#include "model/typical_cut.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/logit_cut.h"

namespace chasqui {
namespace {

// Of so few tokens a list is quicker than a sample and sweeps.
constexpr std::size_t kQuickToList = 2048;

// As an upper bound.
float below_of(float logit) { return std::isfinite(logit) ? logit : LogitRow::kNoHigh; }
float after(float logit) { return std::nextafter(logit, std::numeric_limits<float>::infinity()); }

}  // namespace

TypicalCut::Interval TypicalCut::around(LogitRow& row, float floor, float scale, float middle, double target,
                                        std::size_t least) {
  constexpr double kMore = 1.25;
  if (row.size() <= kQuickToList || least > 1) return whole(row, floor, scale, middle, target, least);
  estimate(row, floor, scale, middle);
  const float distance = expected(target);
  const float low = std::max(floor, middle - distance);
  const LogitRow::Masses masses = row.masses(low, scale, std::max(low, middle + distance));
  const double inside = masses.all - masses.above;
  const bool below = inside < target;
  const double needed = std::abs(target - inside) / std::max(density(distance), 1e-30);
  float width = std::max(static_cast<float>(std::min(kMore * needed, 1e30)), width_ / 16);
  for (;; width *= 4) {
    const float inner = below ? distance : std::max(distance - width, 0.0f);
    const float outer = below ? distance + width : distance;
    const double listed = collect(row, floor, scale, middle, inner, outer);
    const bool all = below ? middle - outer <= floor && middle + outer > row.top() : inner <= 0;
    const bool found = below ? inside + listed >= target : inside - listed < target;
    if (!found && !all) continue;
    return take(middle, {middle - inner, middle + inner}, target - (below ? inside : inside - listed), 0);
  }
}

// The list is of the whole row.
TypicalCut::Interval TypicalCut::whole(LogitRow& row, float floor, float scale, float middle, double target,
                                       std::size_t least) {
  collect(row, floor, scale, middle, 0, std::numeric_limits<float>::infinity());
  return take(middle, {middle, middle}, target, least);
}

// What is inside, and the nearest of the list until they weigh so much; all of them where they do not.
TypicalCut::Interval TypicalCut::take(float middle, Interval inside, double weight, std::size_t least) {
  std::size_t count = 0;
  if (!list_.empty()) {
    const float nearest = std::ranges::max_element(list_, {}, &Candidate::logit)->logit;
    count = std::max<std::size_t>(count_for_mass(list_, nearest, weight), 1);
  }
  if (count < least) {
    count = std::min(least, list_.size());
    std::ranges::nth_element(list_, list_.begin() + static_cast<std::ptrdiff_t>(count) - 1, more_likely);
  }
  for (const Candidate& each : std::span(list_).first(count)) {
    const float logit = logits_[static_cast<std::size_t>(each.token)];
    if (logit < middle) {
      inside.low = std::min(inside.low, logit);
    } else {
      inside.high = std::max(inside.high, after(logit));
    }
  }
  return inside;
}

// Lists what is at least `inner` away, and less than `outer`. Returns what it weighs.
double TypicalCut::collect(LogitRow& row, float floor, float scale, float middle, float inner, float outer) {
  const float low = std::max({floor, middle - outer, LogitRow::kLeast});
  if (inner > 0) {
    row.at_least(low, list_, std::max(low, middle - inner));
    row.at_least(std::max(low, middle + inner), half_, below_of(middle + outer));
    list_.insert(list_.end(), half_.begin(), half_.end());
  } else {
    row.at_least(low, list_, below_of(middle + outer));
  }
  logits_.resize(list_.size());
  for (std::size_t i = 0; i < list_.size(); ++i) logits_[i] = list_[i].logit;
  const std::span<const float> weights = row.weights(logits_, scale);
  double sum = 0;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    sum += list_[i].probability = static_cast<double>(weights[i]);
    list_[i].logit = -std::min(std::abs(list_[i].logit - middle), LogitRow::kMost);
    list_[i].token = static_cast<Token>(i);  // equal ones are in the order of their ids on each side
  }
  return sum;
}

// The likely tokens count each for itself, others as the sample says. A row whose tokens are all likely has no others.
void TypicalCut::estimate(LogitRow& row, float floor, float scale, float middle) {
  constexpr std::size_t kSample = 4096;
  constexpr float kWidest = 48;
  const float bound = std::max(floor, row.bound_of(LogitRow::kLikely));
  row.at_least(bound, list_);
  const std::span<const float> sample = row.sample(kSample);
  float farthest = std::abs(row.top() - middle);
  for (const float logit : sample) {
    if (logit >= floor) farthest = std::max(farthest, std::abs(logit - middle));
  }
  width_ = std::clamp(farthest, 1e-6f, kWidest) / static_cast<float>(kClasses - 1);
  weights_.fill(0);
  const auto count = [this, middle](float logit, double weight) {
    const float of = std::min(std::abs(logit - middle) / width_, static_cast<float>(kClasses - 1));
    weights_[static_cast<std::size_t>(of)] += weight;
  };
  const double each = static_cast<double>(row.size()) / static_cast<double>(std::max<std::size_t>(sample.size(), 1));
  const std::span<const float> weights = row.weights(sample, scale);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (sample[i] >= floor && sample[i] < bound) count(sample[i], each * static_cast<double>(weights[i]));
  }
  logits_.resize(list_.size());
  for (std::size_t i = 0; i < list_.size(); ++i) logits_[i] = list_[i].logit;
  const std::span<const float> likely = row.weights(logits_, scale);
  for (std::size_t i = 0; i < list_.size(); ++i) count(logits_[i], static_cast<double>(likely[i]));
}

// How far away they weigh so much.
float TypicalCut::expected(double target) const {
  std::size_t of = 0;
  for (; of + 1 < kClasses && weights_[of] < target; ++of) target -= weights_[of];
  const double inside = weights_[of] > 0 ? std::min(target / weights_[of], 1.0) : 0.0;
  return (static_cast<float>(of) + static_cast<float>(inside)) * width_;
}

// How much what is about so far away weighs, for a difference of 1.
double TypicalCut::density(float distance) const {
  constexpr std::ptrdiff_t kAround = 4;
  const auto of = static_cast<std::ptrdiff_t>(std::min(distance / width_, static_cast<float>(kClasses - 1)));
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, of - kAround);
  const std::ptrdiff_t end = std::min<std::ptrdiff_t>(kClasses, of + kAround + 1);
  double sum = 0;
  for (std::ptrdiff_t i = first; i < end; ++i) sum += weights_[static_cast<std::size_t>(i)];
  return sum / (static_cast<double>(end - first) * static_cast<double>(width_));
}

}  // namespace chasqui
