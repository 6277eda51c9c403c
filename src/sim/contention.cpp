#include "sim/contention.h"

#include <algorithm>
#include <numeric>

namespace chasqui {
namespace {

constexpr double kWindowSeconds = 10;
constexpr double kThroughout = 0.95;

}  // namespace

void Contention::step(const Batch& batch, Duration took, const ProgressWatch& watch, SimRequestTable& lives) {
  window_seconds_ += to_seconds(took);
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    if (watch.competitors(c) == 0) continue;
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      if (watch.waiting(i, c)) window_[i][c].seconds += to_seconds(took);
    }
  }
  for (const BatchPart& part : batch.parts) {
    const SimRequest* life = lives.find(part.request->id);
    if (life == nullptr) continue;
    const bool next_token = life->generated > 1 && part.rows == 1 && part.samples;
    const double service = next_token ? 2 : part.rows + (part.samples ? 2 : 0);
    const auto c = static_cast<std::size_t>(life->plan.service_class);
    window_[life->plan.tenant][c].service += service / life->plan.weight;
  }
  if (window_seconds_ >= kWindowSeconds) close_window();
}

void Contention::close_window() {
  const auto competes = [this](const auto& shares, std::size_t c) {
    return shares[c].seconds >= kThroughout * window_seconds_;
  };
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    if (std::count_if(window_.begin(), window_.end(), [&](const auto& s) { return competes(s, c); }) < 2) continue;
    seconds_[c] += window_seconds_;
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      if (!competes(window_[i], c)) continue;
      tenants_[i][c].seconds += window_seconds_;
      tenants_[i][c].service += window_[i][c].service;
    }
  }
  for (auto& shares : window_) shares = {};
  window_seconds_ = 0;
}

double Contention::seconds() const { return std::accumulate(seconds_.begin(), seconds_.end(), 0.0); }

double Contention::rate(std::size_t tenant) const {
  Share sum;
  for (const Share& share : tenants_[tenant]) {
    sum.service += share.service;
    sum.seconds += share.seconds;
  }
  return sum.rate();
}

double Contention::jain(std::size_t service_class) const {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const auto& shares : tenants_) {
    const Share& share = shares[service_class];
    if (share.seconds <= 0 || share.seconds < seconds_[service_class] / 20) continue;
    sum += share.rate();
    squares += share.rate() * share.rate();
    ++count;
  }
  return squares > 0 ? sum * sum / (count * squares) : 1;
}

double Contention::jain() const {
  double sum = 0;
  for (std::size_t c = 0; c < kServiceClasses; ++c) sum += seconds_[c] * jain(c);
  return seconds() > 0 ? sum / seconds() : 1;
}

}  // namespace chasqui
