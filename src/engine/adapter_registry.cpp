#include "engine/adapter_registry.h"

#include <algorithm>

#include "base/error.h"

namespace chasqui {

AdapterRegistry::AdapterRegistry(const std::vector<AdapterInfo>& adapters, bool apply) : adapters_(adapters) {
  for (const AdapterInfo& adapter : adapters_) {
    contents_.push_back(adapter.contents);
    standing_.emplace_back(apply ? adapter.scale : 0);
  }
}

std::optional<std::size_t> AdapterRegistry::find(std::string_view name) const {
  const auto found = std::find_if(adapters_.begin(), adapters_.end(), [name](const auto& a) { return a.name == name; });
  if (found == adapters_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - adapters_.begin());
}

std::string AdapterRegistry::names() const {
  std::string text;
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == adapters_.size() ? " and " : ", ") + adapters_[i].name;
  }
  return text;
}

std::vector<float> AdapterRegistry::standing_scales() const {
  std::vector<float> scales(standing_.size());
  for (;;) {
    const std::uint64_t version = version_.load();
    for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = standing_[i].load();
    if (version % 2 == 0 && version_.load() == version) return scales;
  }
}

void AdapterRegistry::set_standing_scales(std::span<const float> scales) {
  CHECK(scales.size() == standing_.size());
  version_.fetch_add(1);
  for (std::size_t i = 0; i < scales.size(); ++i) standing_[i].store(scales[i]);
  version_.fetch_add(1);
}

AdapterSetPtr AdapterRegistry::set_of(std::span<const float> scales, bool named_in_full) const {
  CHECK(scales.size() == contents_.size());
  return make_adapter_set(scales, contents_, named_in_full);
}

}  // namespace chasqui
