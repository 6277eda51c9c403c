// Service that each group of a tenant's requests has received, so that the tenant's group that got least goes next: how
// a gateway shares out what its key gets (Request::group). What other tenants get does not change by it. Owned by the
// Scheduler; pure. Bounded as TenantCounters is.
#pragma once

#include <unordered_map>

#include "core/request.h"
#include "sched/tenant_counters.h"

namespace chasqui {

class GroupCounters {
 public:
  void join(const Request& request) {
    Groups& groups = tenants_[request.tenant.id];
    groups.counters.join(group_of(request));
    ++groups.requests;
  }
  // REQUIRES: it has joined. A tenant without requests is forgotten.
  void leave(const Request& request) {
    const auto found = tenants_.find(request.tenant.id);
    found->second.counters.leave(group_of(request));
    if (--found->second.requests == 0) tenants_.erase(found);
  }
  // REQUIRES: it has joined
  void charge_prompt(const Request& request, TokenCount tokens, TokenCount cached) {
    tenants_.at(request.tenant.id).counters.charge_prompt(group_of(request), tokens, cached);
  }
  void charge_token(const Request& request) { tenants_.at(request.tenant.id).counters.charge_token(group_of(request)); }

  // 0 where the tenant has one group: there is nothing to share.
  double of(const Request& request) const {
    const auto found = tenants_.find(request.tenant.id);
    if (found == tenants_.end() || found->second.counters.size() < 2) return 0;
    return found->second.counters.of(group_of(request));
  }

 private:
  struct Groups {
    TenantCounters counters;
    std::size_t requests = 0;
  };

  static Tenant group_of(const Request& request) {
    Tenant group;
    group.id = request.group;
    return group;
  }

  std::unordered_map<std::uint32_t, Groups> tenants_;
};

}  // namespace chasqui
