#include "sched/tenant_counters.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace chasqui {
namespace {

// So many idle tenants are remembered at most: groups have names that clients choose.
constexpr std::size_t kIdleMax = 1024;

}  // namespace

void TenantCounters::join(const Tenant& tenant) {
  Counter& counter = table_[tenant.id];
  if (counter.requests == 0) {
    if (busy_ > 0) floor_ = std::max(floor_, least_of_busy());
    counter.service = std::max(counter.service, floor_);
    ++busy_;
  }
  ++counter.requests;
  if (table_.size() > static_cast<std::size_t>(busy_) + kIdleMax) forget_idle();
}

void TenantCounters::leave(const Tenant& tenant) {
  const auto found = table_.find(tenant.id);
  CHECK(found != table_.end() && found->second.requests > 0, "a tenant left that had not joined");
  if (--found->second.requests > 0) return;
  // The last to leave takes the clock along, or its successor would start far behind everybody.
  if (--busy_ == 0) floor_ = std::max(floor_, found->second.service);
}

double TenantCounters::of(const Tenant& tenant) const {
  const auto found = table_.find(tenant.id);
  return found != table_.end() ? found->second.service : floor_;
}

void TenantCounters::charge(const Tenant& tenant, double tokens) {
  const auto found = table_.find(tenant.id);
  CHECK(found != table_.end() && tenant.weight > 0);
  found->second.service += tokens / tenant.weight;
}

double TenantCounters::least_of_busy() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [id, counter] : table_) {
    if (counter.requests > 0) least = std::min(least, counter.service);
  }
  return least;
}

// First those whose counter says nothing any more; all of them, also what they have had more than others, where that is
// not enough.
void TenantCounters::forget_idle() {
  std::erase_if(table_,
                [this](const auto& entry) { return entry.second.requests == 0 && entry.second.service <= floor_; });
  if (table_.size() <= static_cast<std::size_t>(busy_) + kIdleMax) return;
  std::erase_if(table_, [](const auto& entry) { return entry.second.requests == 0; });
}

}  // namespace chasqui
