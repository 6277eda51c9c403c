// Which model leaves where one that is wanted has no room.
#include <algorithm>

#include "api/core/served_model.h"
#include "app/model_keeper.h"
#include "app/model_memory.h"
#include "base/log.h"
#include "engine/engine.h"

namespace chasqui {
namespace {

constexpr Duration kPatience = seconds(1);  // of those who wait while all models that are there have work

}  // namespace

// Both limits; what goes, but is not gone, counts. Those that stay loaded count for the memory alone.
bool ModelKeeper::has_room(const Kept& wanted) const {
  std::size_t there = 0;
  std::uint64_t used = wanted.entry.needs + leaving_needs();
  for (const Kept& one : kept_) {
    if (one.swap && one.swap->stage == Swap::Stage::loading && &one != &wanted) used += one.swap->needs;
    if (&one == &wanted || !takes_room(one)) continue;
    there += one.config->on_demand ? 1 : 0;
    used += one.entry.needs;
  }
  return (limits_.most == 0 || there < limits_.most) && (used <= limits_.memory || wanted.entry.needs == 0);
}

// Whether it can ever have room.
Result<void> ModelKeeper::check_room(const Kept& wanted) const {
  std::uint64_t beside = 0;
  for (const Kept& one : kept_) beside += one.config->on_demand ? 0 : one.entry.needs;
  return check_fits(*wanted.config, wanted.entry.needs, beside);
}

// Whether there is, and no other model has waited for longer for it. One that cannot be loaded for the first time
// before this one is over does not count: neither would ever begin.
bool ModelKeeper::make_room(Kept& wanted) {
  for (Kept& one : kept_) settle(one);
  if (!has_room(wanted)) {
    free_room(wanted);
    return false;
  }
  return std::ranges::none_of(kept_, [this, &wanted](const Kept& one) {
    const bool longer = one.waiting > 0 && (wanted.waiting == 0 || one.waits_since < wanted.waits_since);
    const bool can_begin = one.entry.served != nullptr || !busy();
    return &one != &wanted && longer && can_begin && waits(one) && !has_room(one);
  });
}

// The idle one that was not used for the longest time is told to go. One stays for twice the time that loading it has
// taken, so that two in turn do not spend all time on loading. Where all have work for long, the one that was there
// first takes nothing new, and goes when what it has is done.
void ModelKeeper::free_room(Kept& wanted) {
  const TimePoint now = loop_.now();
  bool going = false;      // one that may still have work
  bool gone_soon = false;  // … and has none
  Kept* oldest = nullptr;
  Kept* first = nullptr;
  for (Kept& one : kept_) {
    if (&one == &wanted || !one.config->on_demand || (!loaded(one) && !one.waking)) continue;
    going = going || one.resting;
    gone_soon = gone_soon || (one.resting && one.entry.served->engine.in_flight() == 0);
    if (one.resting || one.waking) continue;
    if (idle(one) && (oldest == nullptr || one.used_at < oldest->used_at)) oldest = &one;
    if (first == nullptr || one.loaded_at < first->loaded_at) first = &one;
  }
  const bool patient = going || wanted.waiting == 0 || now - wanted.waits_since < kPatience;
  Kept* const chosen = oldest != nullptr || patient ? oldest : first;
  if (chosen == nullptr || gone_soon || now - chosen->loaded_at < 2 * chosen->loading_took) return;
  log_info("a model makes room", {{"model", chosen->entry.name}, {"for", wanted.entry.name}});
  rest(*chosen);
}

}  // namespace chasqui
