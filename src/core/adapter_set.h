// Which adapters (LoRA) a request is computed with, and how strongly. Immutable, shared by pointer; a null pointer is
// the model alone. KV that was computed with one set is of no use to another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace chasqui {

// The n-th of those that were loaded at start.
struct AdapterUse {
  std::int32_t adapter = 0;
  float scale = 1;  // never 0
  bool operator==(const AdapterUse&) const = default;
};

struct AdapterSet {
  // Its name in keys, the same after a restart: a hash of the adapters' files and of the scales. Never 0.
  std::uint64_t id = 0;
  std::vector<AdapterUse> uses;  // each adapter once, ascending; none only of a set for one request
  std::uint64_t alone = 0;       // of this request, whose rows share no batch with those of others; 0: of any
  bool named_in_full = false;    // the request said "MODEL:adapter"; for metrics alone
};
using AdapterSetPtr = std::shared_ptr<const AdapterSet>;

// `scales` and `contents` (a hash of the file) are of all adapters, in their order; with a scale of 0 one is not used.
// Null when none is.
AdapterSetPtr make_adapter_set(std::span<const float> scales, std::span<const std::uint64_t> contents,
                               bool named_in_full = false);

// The same for one request, whose rows share no batch with those of others. What such requests compute has a key of its
// own. REQUIRES: request is not 0
AdapterSetPtr make_alone(const AdapterSetPtr& set, std::uint64_t request);

// In keys; 0: the model alone.
inline std::uint64_t id_of(const AdapterSet* set) { return set != nullptr ? set->id : 0; }
// Whether rows of the one may be in a batch of the other. Two ids may be equal by malice; what they stand for may not.
inline bool same_adapters(const AdapterSet* a, const AdapterSet* b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && a->alone == b->alone && a->uses == b->uses;
}

}  // namespace chasqui
