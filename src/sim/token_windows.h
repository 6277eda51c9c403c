// How many tokens each tenant gets in windows of ten seconds, and how evenly: each over its max-min share, since a
// tenant with few clients cannot use more slots than it has clients, and the others share what it leaves. Owned by the
// statistics; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/clock.h"

namespace chasqui {

class TokenWindows {
 public:
  static constexpr Duration kWindow = seconds(10);

  explicit TokenWindows(std::size_t tenants) : tenants_(tenants) {}

  void add(std::uint32_t tenant, TimePoint now, std::int64_t tokens) {
    if (!begun_) first_ = now;
    begun_ = true;
    const auto window = static_cast<std::size_t>((now - first_) / kWindow);
    if (windows_.size() <= window) windows_.resize(window + 1, std::vector<std::int64_t>(tenants_));
    windows_[window][tenant] += tokens;
  }

  // Jain's index of the worst window, without the first `skipped` ones and those behind the last token of any tenant,
  // in which not all are there; 1 when there are no others. `clients`: of each tenant.
  double least_jain(std::span<const double> clients, double slots, std::size_t skipped) const {
    const std::vector<double> fair = max_min(clients, slots);
    double least = 1;
    for (std::size_t i = skipped; i < end_of_first(); ++i) {
      double sum = 0;
      double squares = 0;
      for (std::size_t t = 0; t < fair.size(); ++t) {
        const double share = static_cast<double>(windows_[i][t]) / fair[t];
        sum += share;
        squares += share * share;
      }
      if (squares > 0) least = std::min(least, sum * sum / (static_cast<double>(fair.size()) * squares));
    }
    return least;
  }
  // The window in which the tenant that ends first gets its last token.
  std::size_t end_of_first() const {
    std::size_t end = windows_.size();
    for (std::size_t t = 0; t < tenants_; ++t) {
      std::size_t last = windows_.size();
      while (last > 0 && windows_[last - 1][t] == 0) --last;
      end = std::min(end, last > 0 ? last - 1 : 0);
    }
    return end;
  }

  // Equal parts of the slots, of which none is more than a tenant's clients can use.
  static std::vector<double> max_min(std::span<const double> clients, double slots) {
    std::vector<std::size_t> order(clients.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [clients](std::size_t i) { return clients[i]; });
    std::vector<double> out(clients.size());
    double left = slots;
    for (std::size_t i = 0; i < order.size(); ++i) {
      out[order[i]] = std::min(clients[order[i]], left / static_cast<double>(order.size() - i));
      left -= out[order[i]];
    }
    return out;
  }

 private:
  const std::size_t tenants_;
  TimePoint first_{};
  bool begun_ = false;
  std::vector<std::vector<std::int64_t>> windows_;
};

}  // namespace chasqui
