#include "sched/cached_slots.h"

#include <algorithm>

#include "base/error.h"

namespace chasqui {
namespace {

// What it would cost to compute it again, less the longer it was not used: as a copy that is asked for less and less.
double value_of(const CachedSlots::Kept& kept, TimePoint now) {
  return (kept.returns ? 4.0 : 1.0) * kept.length() / (1 + std::max(0.0, to_seconds(now - kept.used)));
}

template <class Eligible>
const CachedSlots::Kept* least(const std::vector<CachedSlots::Kept>& all, TimePoint now, Eligible eligible) {
  const CachedSlots::Kept* best = nullptr;
  for (const CachedSlots::Kept& kept : all) {
    if (!eligible(kept)) continue;
    if (best == nullptr || value_of(kept, now) < value_of(*best, now)) best = &kept;
  }
  return best;
}

}  // namespace

void CachedSlots::add(Kept kept) {
  if (holdings_ != nullptr) kept.holding = holdings_->hold(kept.key, kept.tokens);
  kept_.push_back(std::move(kept));
}

void CachedSlots::end_holding(Kept& kept) {
  if (holdings_ != nullptr) holdings_->drop(std::exchange(kept.holding, 0));
}

CachedSlots::Kept* CachedSlots::find(SlotId slot) {
  const auto found = std::ranges::find(kept_, slot, &Kept::slot);
  return found != kept_.end() ? &*found : nullptr;
}

std::pair<const CachedSlots::Kept*, TokenCount> CachedSlots::match(PrefixKey key, std::span<const Token> tokens,
                                                                   TokenCount most) const {
  std::pair<const Kept*, TokenCount> best{nullptr, 0};
  tokens = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(std::max(most, 0))));
  for (const Kept& kept : kept_) {
    if (kept.key != key) continue;
    const auto end = std::ranges::mismatch(tokens, kept.tokens).in1;
    const auto length = static_cast<TokenCount>(end - tokens.begin());
    const bool better =
        length > best.second || (length > 0 && length == best.second && kept.length() < best.first->length());
    if (better) best = {&kept, length};
  }
  return best;
}

const CachedSlots::Kept* CachedSlots::least_valuable(TimePoint now, SlotId except) const {
  return least(kept_, now, [except](const Kept& kept) { return kept.safe && !kept.pinned() && kept.slot != except; });
}

const CachedSlots::Kept* CachedSlots::least_unsafe(TimePoint now) const {
  return least(kept_, now, [](const Kept& kept) { return !kept.safe && !kept.copying; });
}

std::size_t CachedSlots::ready() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(kept_, [](const Kept& kept) { return kept.safe && !kept.pinned(); }));
}

void CachedSlots::try_again() {
  for (Kept& kept : kept_) {
    if (kept.no_room) kept.safe = kept.no_room = false;
  }
}

void CachedSlots::remove(SlotId slot) {
  const auto found = std::ranges::find(kept_, slot, &Kept::slot);
  CHECK(found != kept_.end(), "a slot is not cached");
  end_holding(*found);
  kept_.erase(found);
}

std::size_t CachedSlots::forget(std::uint32_t tenant, std::vector<SlotId>& slots) {
  std::size_t unsafe = 0;
  const auto gone = std::remove_if(kept_.begin(), kept_.end(), [&](Kept& kept) {
    if (kept.key.tenant != tenant) return false;
    end_holding(kept);
    unsafe += kept.safe ? 0 : 1;
    kept.safe = true;
    kept.no_room = kept.copying = false;
    if (kept.readers > 0) {
      kept.key.tenant = UINT32_MAX;  // no tenant has this number, so no request finds it
      return false;
    }
    slots.push_back(kept.slot);
    return true;
  });
  kept_.erase(gone, kept_.end());
  return unsafe;
}

}  // namespace chasqui
