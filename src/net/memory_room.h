// Which message on its way, a frame or the body of a request, is given up when all of them together hold more memory
// than they may: of the user who holds most, the one that has held most for longest. So a client that sends a large one
// without a pause gets it through beside any number that stand still, or trickle, and one user's make no room at
// another's expense. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "base/clock.h"

namespace chasqui::net {

struct MemoryHolding {
  std::optional<std::uint32_t> user;  // at the other end; none: the kernel does not say
  std::size_t bytes = 0;
  TimePoint since{};
};

// Its index; nothing where every message of that user is younger than `fresh`.
inline std::optional<std::size_t> costliest(std::span<const MemoryHolding> all, Duration fresh, TimePoint now) {
  std::map<std::optional<std::uint32_t>, std::size_t> users;
  for (const MemoryHolding& one : all) users[one.user] += one.bytes;
  std::size_t most = 0;
  for (const auto& [user, bytes] : users) most = std::max(most, bytes);
  std::optional<std::size_t> found;
  double cost = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Duration age = now - all[i].since;
    if (users[all[i].user] < most || age < fresh) continue;
    const double its = static_cast<double>(all[i].bytes) * to_seconds(age);
    if (found && its <= cost) continue;
    found = i;
    cost = its;
  }
  return found;
}

}  // namespace chasqui::net
