// The adapters that clients may ask for by name or number, and what a request gets that asks for none. The list is
// constant; the standing scales are changed by the loop and read by any thread.
#pragma once

#include <atomic>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/adapter_set.h"
#include "model/model_info.h"

namespace chasqui {

class AdapterRegistry {
 public:
  // `adapters` outlives the registry. Requests that say nothing get each at the scale it was loaded with, or, with
  // `apply` false, none of them.
  AdapterRegistry(const std::vector<AdapterInfo>& adapters, bool apply);

  const std::vector<AdapterInfo>& adapters() const { return adapters_; }
  bool empty() const { return adapters_.empty(); }
  std::optional<std::size_t> find(std::string_view name) const;
  // "a, b and c", for errors.
  std::string names() const;

  // What requests get that say nothing.
  std::vector<float> standing_scales() const;
  AdapterSetPtr standing() const { return set_of(standing_scales()); }
  // One writer. REQUIRES: one for each adapter
  void set_standing_scales(std::span<const float> scales);

  // REQUIRES: one scale for each adapter
  AdapterSetPtr set_of(std::span<const float> scales, bool named_in_full = false) const;

 private:
  const std::vector<AdapterInfo>& adapters_;
  std::vector<std::uint64_t> contents_;
  // A reader that reads while the scales are written reads again: the version is odd meanwhile, another one afterwards.
  std::atomic<std::uint64_t> version_{0};
  std::deque<std::atomic<float>> standing_;
};

}  // namespace chasqui
