#include "sched/wait_gauge.h"

#include <algorithm>

namespace chasqui {
namespace {

// Nearly all: this share of the newest.
constexpr double kNearlyAll = 0.95;

}  // namespace

void WaitGauge::arrived(const Request& request, Duration predicted) {
  open_[request.id.value] = {request.service_class, predicted};
}

void WaitGauge::waited(RequestId id, Duration wait, bool over) {
  const auto found = open_.find(id.value);
  if (found == open_.end()) return;
  Open& open = found->second;
  const Duration excess = wait - open.predicted;
  // Who still waits says nothing yet, unless it has waited too long already: then the next need not wait to know.
  if (!open.counted && (over || excess > this->excess(open.service_class))) {
    count(open.service_class, excess);
    open.counted = true;
  }
  if (over) open_.erase(found);
}

void WaitGauge::count(ServiceClass service_class, Duration excess) {
  Lately& lately = lately_[static_cast<std::size_t>(service_class)];
  lately.values[lately.count++ % Lately::kNewest] = excess;
  const std::size_t known = std::min(lately.count, Lately::kNewest);
  std::array<Duration, Lately::kNewest> sorted = lately.values;
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(kNearlyAll * static_cast<double>(known - 1) + 0.5);
  std::nth_element(sorted.begin(), at, sorted.begin() + static_cast<std::ptrdiff_t>(known));
  excess_[static_cast<std::size_t>(service_class)] = std::max(*at, Duration::zero());
}

}  // namespace chasqui
