#include "core/adapter_set.h"

#include <bit>

#include "base/mixed_bits.h"

namespace chasqui {

AdapterSetPtr make_chosen_set(std::span<const AdapterChoice> choices, bool named_in_full) {
  auto set = std::make_shared<AdapterSet>();
  set->named_in_full = named_in_full;
  for (const AdapterChoice& choice : choices) {
    if (choice.use.scale == 0) continue;
    set->uses.push_back(choice.use);
    if (choice.lease) set->leases.push_back(choice.lease);
    const std::uint64_t scale = std::bit_cast<std::uint32_t>(choice.use.scale);
    set->id = mixed_bits(set->id + choice.contents) ^ mixed_bits(0x9E3779B97F4A7C15ull + scale);
  }
  if (set->uses.empty()) return nullptr;
  if (set->id == 0) set->id = 1;
  return set;
}

AdapterSetPtr make_adapter_set(std::span<const float> scales, std::span<const std::uint64_t> contents,
                               bool named_in_full) {
  std::vector<AdapterChoice> choices(scales.size());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    choices[i] = {{static_cast<std::int32_t>(i), scales[i]}, contents[i], nullptr};
  }
  return make_chosen_set(choices, named_in_full);
}

AdapterSetPtr without_leases(const AdapterSetPtr& set) {
  if (!set || set->leases.empty()) return set;
  auto bare = std::make_shared<AdapterSet>(*set);
  bare->leases.clear();
  return bare;
}

AdapterSetPtr make_alone(const AdapterSetPtr& set, std::uint64_t request) {
  auto alone = std::make_shared<AdapterSet>();
  if (set) alone->uses = set->uses;
  alone->named_in_full = set && set->named_in_full;
  alone->id = mixed_bits(id_of(set.get()) + 0xD1B54A32D192ED03ull);
  alone->alone = request;
  if (alone->id == 0) alone->id = 1;
  return alone;
}

}  // namespace chasqui
