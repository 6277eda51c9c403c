// Whose is what outlives the process: snapshots, encodings and slots on disk. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "core/types.h"

namespace chasqui {

// Of a tenant where all of them `share` it, or none does. None: the tenant is not known beyond this process, and
// leaves nothing behind.
constexpr std::optional<std::uint64_t> lasting_tenant(const Tenant& tenant, bool share) {
  constexpr std::uint64_t kAll = 1;  // never one's own, see Tenant::lasting
  if (share) return kAll;
  if (tenant.id == 0 || tenant.lasting != 0) return tenant.lasting;
  return std::nullopt;
}

}  // namespace chasqui
