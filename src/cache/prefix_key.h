// Whose KV a prefix is, and by which weights it was computed. Pure value.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace chasqui {

// Entries of different keys never serve each other.
struct PrefixKey {
  std::uint32_t tenant = 0;    // salt: tenants that may share have the same one
  std::uint64_t adapters = 0;  // AdapterSet::id; 0: the model alone
  auto operator<=>(const PrefixKey&) const = default;
};

}  // namespace chasqui

template <>
struct std::hash<chasqui::PrefixKey> {
  std::size_t operator()(chasqui::PrefixKey key) const noexcept {
    return static_cast<std::size_t>((std::uint64_t{key.tenant} ^ key.adapters * 0xD6E8FEB86659FD93ull) *
                                    0x9E3779B97F4A7C15ull);
  }
};
