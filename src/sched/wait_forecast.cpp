#include "sched/wait_forecast.h"

#include <algorithm>
#include <cmath>

namespace chasqui {
namespace {

// Weight of the newest sequence in the moving average of slot times.
constexpr double kNewestSlotTime = 0.1;
// The pace of prompts is that of so many seconds of reading.
constexpr double kPaceOver = 3;
// Nearly all: this share of the newest.
constexpr double kNearlyAll = 0.95;
// An excess that is not confirmed halves in this time: when it keeps all requests out, one must be let in to see
// whether it is still true.
constexpr Duration kFades = seconds(3);

}  // namespace

void WaitForecast::slot_held(Duration held) {
  slot_seconds_ += (slot_seconds_ > 0 ? kNewestSlotTime : 1) * (to_seconds(held) - slot_seconds_);
}

void WaitForecast::read(TokenCount rows, Duration took, double alone) {
  const double kept = std::exp(-to_seconds(took) / kPaceOver);
  rows_lately_ = kept * rows_lately_ + rows;
  seconds_lately_ = kept * seconds_lately_ + to_seconds(took);
  // Less than a row, after a step of minutes, would be a pace of centuries.
  row_seconds_ = std::max(alone, rows_lately_ >= 1 ? seconds_lately_ / rows_lately_ : row_seconds_);
}

void WaitForecast::arrived(const Request& request, Duration wait) {
  open_[request.id.value] = {request.service_class, wait};
}

void WaitForecast::waited(RequestId id, Duration wait, TokenCount rows, bool over, TimePoint now) {
  const auto found = open_.find(id.value);
  if (found == open_.end()) return;
  Open& open = found->second;
  const auto own = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(rows * row_seconds_));
  const Duration excess = wait - own - open.predicted;
  // Who still waits says nothing yet, unless it has waited too long already: then the next need not wait to know.
  if (!open.counted && (over || excess > this->excess(open.service_class, now))) {
    count(open.service_class, excess, now);
    open.counted = true;
  }
  if (over) open_.erase(found);
}

void WaitForecast::count(ServiceClass service_class, Duration excess, TimePoint now) {
  Lately& lately = lately_[static_cast<std::size_t>(service_class)];
  lately.values[lately.count++ % Lately::kNewest] = excess;
  const std::size_t known = std::min(lately.count, Lately::kNewest);
  std::array<Duration, Lately::kNewest> sorted = lately.values;
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(kNearlyAll * static_cast<double>(known - 1) + 0.5);
  std::nth_element(sorted.begin(), at, sorted.begin() + static_cast<std::ptrdiff_t>(known));
  lately.nearly_all = std::max(*at, Duration::zero());
  lately.confirmed = now;
}

Duration WaitForecast::excess(ServiceClass service_class, TimePoint now) const {
  const Lately& lately = lately_[static_cast<std::size_t>(service_class)];
  if (lately.nearly_all == Duration::zero()) return {};
  const double halves = std::max(0.0, to_seconds(now - lately.confirmed) / to_seconds(kFades));
  return std::chrono::duration_cast<Duration>(lately.nearly_all * std::exp2(-halves));
}

}  // namespace chasqui
