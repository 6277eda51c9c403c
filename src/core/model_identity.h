// What KV that outlives the process belongs to: of which model it is, and how its context was made. Made by model/,
// compared by cache/. A plain value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace chasqui {

struct ModelIdentity {
  std::array<std::byte, 16> weights{};  // metadata and tensors of the file
  std::array<std::byte, 16> context{};  // whatever else decides what the bytes of a snapshot mean
  auto operator<=>(const ModelIdentity&) const = default;
};

// Whose KV it is, by names that are the same after a restart; PrefixKey has those of this process.
struct LastingKey {
  std::uint64_t tenant = 0;   // 0: everybody where there are no keys
  std::uint64_t adapter = 0;  // 0: none
  auto operator<=>(const LastingKey&) const = default;
};

}  // namespace chasqui
