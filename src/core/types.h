// Ids and units that every folder shares. Strong types where two could be mixed up in one call. Pure values.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace chasqui {

using Token = std::int32_t;  // an id of the model's vocabulary
// No prompt has it; what is below it is a place of a picture or a sound, see core/media.h.
constexpr Token kNoToken = -1;
using TokenCount = std::int32_t;  // tokens, cells and positions are all counted in this

// Made by the server, never taken from a client; unique in the process.
struct RequestId {
  std::uint64_t value = 0;
  auto operator<=>(const RequestId&) const = default;
};

// One llama_seq_id of a context: 0 … slots-1.
struct SlotId {
  std::int32_t value = -1;
  auto operator<=>(const SlotId&) const = default;
  bool valid() const { return value >= 0; }
};

// What kind of client waits for the answer, most urgent first.
enum class ServiceClass : std::uint8_t { interactive, standard, background };
constexpr std::size_t kServiceClasses = 3;
constexpr std::string_view name(ServiceClass service_class) {
  constexpr std::string_view names[kServiceClasses] = {"interactive", "standard", "background"};
  return names[static_cast<std::size_t>(service_class)];
}

// Whose work a request is: the identity behind an API key, and its share of the service under load.
struct Tenant {
  std::uint32_t id = 0;  // 0: everybody without a key of their own
  double weight = 1;     // > 0; twice the weight is twice the service
  // Its name for what outlives the process, where ids are given anew: 0 for the anonymous tenant, never for one that
  // has a key, and never 1, which stands for all together.
  std::uint64_t lasting = 0;
};

}  // namespace chasqui

template <>
struct std::hash<chasqui::RequestId> {
  std::size_t operator()(chasqui::RequestId id) const noexcept {
    // Ids are consecutive; spread them, since open-addressing tables rely on the high bits too.
    return static_cast<std::size_t>(id.value * 0x9E3779B97F4A7C15ull);
  }
};
