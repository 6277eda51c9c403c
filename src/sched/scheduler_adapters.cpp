// The part of the Scheduler that keeps sequences with the same adapters in adjacent slots, while there are several sets
// of adapters: a step has rows of one set only, and a hole in the ids of its slots costs a pass over the weights.
#include <algorithm>
#include <tuple>

#include "sched/scheduler.h"
#include "sched/thresholds.h"

namespace chasqui {

// Brings the decoding sequences into the slots 0 … n-1, those with the same adapters side by side. A sequence in the
// way goes where the other one was. What takes longer than the copies of a step may stays where it is, and costs
// passes: an exchange of two long ones would stop the streams of all sets. Nothing else is given up for it then.
void Scheduler::bring_sets_together(Batch& batch) {
  if (!config_.dense_slots) return;
  line_.clear();
  for (const auto& sequence : running_) {
    if (sequence->decoding()) line_.push_back(sequence.get());
  }
  const auto set_of = [](const Sequence& sequence) { return sequence.request().adapters.get(); };
  std::sort(line_.begin(), line_.end(), [&](const Sequence* a, const Sequence* b) {
    return std::tuple(id_of(set_of(*a)), a->slot()) < std::tuple(id_of(set_of(*b)), b->slot());
  });
  const auto in_place = [&](const Sequence& sequence) {
    const auto at = static_cast<std::size_t>(sequence.slot().value);
    return at < line_.size() && same_adapters(set_of(*line_[at]), set_of(sequence));
  };
  std::size_t copies = 0;
  TokenCount too_long = INT32_MAX;  // in this step, whose time for copies only gets less
  bool apart = false;
  for (std::size_t i = 0; i < line_.size(); ++i) {
    const SlotId slot{static_cast<std::int32_t>(i)};
    const AdapterSet* wanted = set_of(*line_[i]);
    const auto belongs = [&](const auto& s) { return s->decoding() && same_adapters(set_of(*s), wanted); };
    const auto holder =
        std::find_if(running_.begin(), running_.end(), [slot](const auto& s) { return !(s->slot() < slot); });
    const bool free = holder == running_.end() || (*holder)->slot() != slot;
    if (!free && (belongs(*holder) || !config_.exchanges || (*holder)->awaits_prefix())) continue;
    const auto last = std::find_if(running_.rbegin(), running_.rend(), belongs);
    // Two sets have one id, or some could not move.
    if (last == running_.rend() || (*last)->slot() <= slot || in_place(**last)) continue;
    const std::size_t needed = free ? 1 : 2;
    if (copies + needed > kMovesPerStep) break;
    const TokenCount tokens = (*last)->computed() + (free ? 0 : (*holder)->computed());
    const bool in_time = tokens < too_long && moves_in_time(tokens, batch);
    if (!in_time) too_long = std::min(too_long, tokens);
    if (!in_time || (ledger_.is_cached(slot) && !make_room(slot, batch))) {
      apart = true;
      continue;
    }
    copies += needed;
    const Duration time = time_to_move(tokens);
    batch.copying += time;
    hole_cost_ -= std::min(hole_cost_, time);  // or each move of the step could take as long
    const auto place = static_cast<std::size_t>(running_.rend() - last) - 1;
    if (free) {
      move(place, slot, batch);
    } else {
      exchange(place, static_cast<std::size_t>(holder - running_.begin()), batch);
    }
  }
  hole_cost_ = apart ? std::min(hole_cost_ + step_time_.pass(), kShortWait) : Duration::zero();
}

// What no sequence has in this slot goes, or is on its way out. Not what a move of the batch brings there, since slots
// are emptied before that.
bool Scheduler::make_room(SlotId slot, Batch& batch) {
  const auto touches = [slot](const SlotMove& move) { return move.from == slot || move.to == slot; };
  if (std::ranges::any_of(batch.moves, touches) || !reuse_.give_up(slot)) return false;
  ledger_.release(slot);
  batch.trims.push_back(slot);
  return true;
}

void Scheduler::exchange(std::size_t place, std::size_t other, Batch& batch) {
  Sequence& high = *running_[place];
  Sequence& low = *running_[other];
  const SlotId from = high.slot();
  const SlotId to = low.slot();
  if (low.computed() > 0) {
    batch.moves.push_back({from, to, true});
    moves_ += 2;
  } else if (high.computed() > 0) {
    batch.moves.push_back({from, to});
    ++moves_;
  }
  ledger_.exchange(from, to);
  high.move(to);
  low.move(from);
  std::swap(running_[place], running_[other]);
}

}  // namespace chasqui
