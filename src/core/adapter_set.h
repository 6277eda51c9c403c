// Which adapters (LoRA) a request is computed with, and how strongly. Immutable, shared by pointer; a null pointer is
// the model alone. KV that was computed with one set is of no use to another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace chasqui {

// An adapter by its place among those that are loaded.
struct AdapterUse {
  std::int32_t adapter = 0;
  float scale = 1;            // never 0
  std::uint32_t version = 0;  // another one for each adapter that has had this place
  bool operator==(const AdapterUse&) const = default;
};

// What a set is made of.
struct AdapterChoice {
  AdapterUse use;                     // with a scale of 0 it is not used
  std::uint64_t contents = 0;         // a hash of the file
  std::shared_ptr<const void> lease;  // the adapter stays loaded as long as there is a copy of it
};

struct AdapterSet {
  // Its name in keys, the same after a restart: a hash of the adapters' files and of the scales. Never 0.
  std::uint64_t id = 0;
  std::vector<AdapterUse> uses;  // each adapter once, ascending; none only of a set for one request
  std::vector<std::shared_ptr<const void>> leases{};  // of those that can be unloaded while there are requests
  std::uint64_t alone = 0;     // of this request, whose rows share no batch with those of others; 0: of any
  bool named_in_full = false;  // the request said "MODEL:adapter"; for metrics alone
};
using AdapterSetPtr = std::shared_ptr<const AdapterSet>;

// `choices` are ascending by place. Null when none is used.
AdapterSetPtr make_chosen_set(std::span<const AdapterChoice> choices, bool named_in_full = false);
// Of adapters that are never unloaded: `scales` and `contents` are of all of them, by place.
AdapterSetPtr make_adapter_set(std::span<const float> scales, std::span<const std::uint64_t> contents,
                               bool named_in_full = false);

// For who remembers it for longer than it is used. REQUIRES: where it is used, a copy of the leases is kept
AdapterSetPtr without_leases(const AdapterSetPtr& set);

// The same for one request, whose rows share no batch with those of others, without leases. What such requests compute
// has a key of its own. REQUIRES: request is not 0
AdapterSetPtr make_alone(const AdapterSetPtr& set, std::uint64_t request);

// In keys; 0: the model alone.
inline std::uint64_t id_of(const AdapterSet* set) { return set != nullptr ? set->id : 0; }
// Whether rows of the one may be in a batch of the other. Two ids may be equal by malice; what they stand for may not.
inline bool same_adapters(const AdapterSet* a, const AdapterSet* b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && a->alone == b->alone && a->uses == b->uses;
}

}  // namespace chasqui
