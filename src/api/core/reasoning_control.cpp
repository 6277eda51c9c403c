#include "api/core/reasoning_control.h"

#include <algorithm>

namespace chasqui {

void ReasoningSwitches::add(const ReasoningSwitchPtr& one) {
  if (by_id_.size() >= clean_at_) {
    std::erase_if(by_id_, [](const auto& entry) { return entry.second.expired(); });
    clean_at_ = std::max<std::size_t>(64, 2 * by_id_.size());
  }
  by_id_[one->id] = one;
}

ReasoningSwitchPtr ReasoningSwitches::find(std::uint32_t tenant, const std::string& id) const {
  const auto found = by_id_.find(id);
  ReasoningSwitchPtr one = found != by_id_.end() ? found->second.lock() : nullptr;
  return one != nullptr && one->tenant == tenant ? one : nullptr;
}

}  // namespace chasqui
