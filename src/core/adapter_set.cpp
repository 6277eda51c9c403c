#include "core/adapter_set.h"

#include <bit>

namespace chasqui {
namespace {

// The finaliser of splitmix64: every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ull;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

AdapterSetPtr make_adapter_set(std::span<const float> scales, std::span<const std::uint64_t> contents,
                               bool named_in_full) {
  auto set = std::make_shared<AdapterSet>();
  set->named_in_full = named_in_full;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] == 0) continue;
    set->uses.push_back({static_cast<std::int32_t>(i), scales[i]});
    set->id = mix(set->id + contents[i]) ^ mix(0x9E3779B97F4A7C15ull + std::bit_cast<std::uint32_t>(scales[i]));
  }
  if (set->uses.empty()) return nullptr;
  if (set->id == 0) set->id = 1;
  return set;
}

AdapterSetPtr make_alone(const AdapterSetPtr& set, std::uint64_t request) {
  auto alone = std::make_shared<AdapterSet>();
  if (set) alone->uses = set->uses;
  alone->named_in_full = set && set->named_in_full;
  alone->id = mix(id_of(set.get()) + 0xD1B54A32D192ED03ull);
  alone->alone = request;
  if (alone->id == 0) alone->id = 1;
  return alone;
}

}  // namespace chasqui
