// The part of the Scheduler that keeps the slots of streams adjacent: with a hole in their ids, rows would be computed
// in two passes over the weights instead of one. A hole is a free slot, a cached one, or one whose prompt is still
// read.
#include <algorithm>
#include <numeric>

#include "sched/scheduler.h"
#include "sched/thresholds.h"

namespace chasqui {

// Brings the decoding sequences into adjacent slots, wherever that takes the fewest copies. A sequence that is still
// prefilling makes room, unless it is about to decode itself; so does a cached slot.
void Scheduler::close_holes(Batch& batch) {
  if (!config_.dense_slots || !config_.targets.rules.dense_slots) return;
  const auto first = cheapest_window();
  if (!first) {
    hole_cost_ = {};
    return;
  }
  const auto decoding = std::count_if(running_.begin(), running_.end(), [](const auto& s) { return s->decoding(); });
  auto end = *first + static_cast<std::int32_t>(decoding);
  bool open = false;
  for (SlotId slot{*first}; slot.value < end && batch.moves.size() < kMovesPerStep; ++slot.value) {
    if (fill_hole(slot, *first, end, batch)) continue;
    const bool prompt = !ledger_.is_free(slot) && !ledger_.is_cached(slot);  // gives rows to decode steps
    end = std::min(end + (prompt ? 1 : 0), ledger_.slots_total());
    open = open || !prompt;
  }
  hole_cost_ = open ? hole_cost_ + step_time_.pass() : Duration::zero();
}

// Where the slots begin that the decoding sequences are to have; nothing: they are adjacent. With cached slots among
// them, of all places the one with the fewest tokens that have to be moved.
std::optional<std::int32_t> Scheduler::cheapest_window() {
  if (reuse_.slots().empty()) return 0;
  const auto slots = static_cast<std::size_t>(ledger_.slots_total());
  inside_.assign(slots + 1, 0);   // what is in the way, up to here
  outside_.assign(slots + 1, 0);  // what streams hold, up to here
  std::int32_t decoding = 0;
  std::int32_t first = ledger_.slots_total();
  std::int32_t last = -1;
  for (const auto& sequence : running_) {
    const std::int32_t slot = sequence->slot().value;
    (sequence->decoding() ? outside_ : inside_)[static_cast<std::size_t>(slot) + 1] = sequence->computed() + 1;
    if (!sequence->decoding()) continue;
    ++decoding;
    first = std::min(first, slot);
    last = slot;
  }
  if (last - first + 1 <= decoding) return std::nullopt;
  for (const CachedSlots::Kept& kept : reuse_.slots().all()) {
    inside_[static_cast<std::size_t>(kept.slot.value) + 1] = kept.length() + 1;
  }
  std::partial_sum(inside_.begin(), inside_.end(), inside_.begin());
  std::partial_sum(outside_.begin(), outside_.end(), outside_.begin());
  std::int32_t best = 0;
  TokenCount least = INT32_MAX;
  for (std::int32_t begin = 0; begin + decoding <= ledger_.slots_total(); ++begin) {
    const auto from = static_cast<std::size_t>(begin);
    const auto to = from + static_cast<std::size_t>(decoding);
    const TokenCount tokens = inside_[to] - inside_[from] + outside_.back() - (outside_[to] - outside_[from]);
    if (tokens >= least) continue;
    least = tokens;
    best = begin;
  }
  return best;
}

// False: it stays a hole for now.
bool Scheduler::fill_hole(SlotId slot, std::int32_t first, std::int32_t end, Batch& batch) {
  const auto holder =
      std::find_if(running_.begin(), running_.end(), [slot](const auto& s) { return s->slot() == slot; });
  const bool held = holder != running_.end();
  if (held && (*holder)->decoding()) return true;
  const auto comes = [&](const auto& s) {
    return s->decoding() && (s->slot().value < first || s->slot().value >= end);
  };
  auto last = std::find_if(running_.rbegin(), running_.rend(), comes);
  if (last == running_.rend()) return true;
  const RequestId id = (*last)->id();
  const TokenCount tokens = (*last)->computed();
  if (held) {
    if ((*holder)->awaits_prefix() || (*holder)->left() <= kUsualRows) return false;
    SlotId away{ledger_.slots_total() - 1};
    while (away.valid() && (!ledger_.is_free(away) || (away.value >= first && away.value < end))) --away.value;
    if (!away.valid()) return false;
    if (batch.moves.size() + 2 > kMovesPerStep || !affords_move((*holder)->computed() + tokens, batch)) return false;
    move(static_cast<std::size_t>(holder - running_.begin()), away, batch);
  } else if (ledger_.is_cached(slot)) {
    const CachedSlots::Kept& kept = *reuse_.slots().find(slot);
    const TokenCount both = kept.length() + tokens;
    if (config_.exchanges && !kept.pinned() && batch.moves.size() + 2 <= kMovesPerStep && affords_move(both, batch)) {
      exchange_cached(place_of(id), slot, batch);
      return true;
    }
    if (!make_room(slot, batch)) return false;
    if (!affords_move(tokens, batch)) return false;
  } else if (!affords_move(tokens, batch)) {
    return false;
  }
  move(place_of(id), slot, batch);
  return true;
}

// In time, and then it is counted as a part of the step.
bool Scheduler::affords_move(TokenCount tokens, Batch& batch) {
  if (!moves_in_time(tokens, batch)) return false;
  batch.copying += time_to_move(tokens);
  return true;
}

// A move that takes longer than the copies of a step may is made when the hole has cost as much, if streams can wait so
// long for it.
bool Scheduler::moves_in_time(TokenCount tokens, const Batch& batch) const {
  return time_to_move(tokens) <= std::max(time_for_copies(batch), std::min(hole_cost_, kShortWait));
}

// Out of slots and into others.
Duration Scheduler::time_to_move(TokenCount tokens) const {
  const std::chrono::duration<double> both(reuse_.save_seconds(tokens) + reuse_.restore_seconds(tokens));
  return std::chrono::duration_cast<Duration>(both);
}

void Scheduler::move(std::size_t place, SlotId to, Batch& batch) {
  std::unique_ptr<Sequence> sequence = std::move(running_[place]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
  if (sequence->computed() > 0) {
    batch.moves.push_back({sequence->slot(), to});
    ++moves_;
  }
  ledger_.move(sequence->slot(), to);
  sequence->move(to);
  insert_running(std::move(sequence));
}

// What a cached slot holds goes where the sequence was.
void Scheduler::exchange_cached(std::size_t place, SlotId to, Batch& batch) {
  std::unique_ptr<Sequence> sequence = std::move(running_[place]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
  batch.moves.push_back({sequence->slot(), to, true});
  moves_ += 2;
  ledger_.exchange(sequence->slot(), to);
  reuse_.moved(to, sequence->slot());
  sequence->move(to);
  insert_running(std::move(sequence));
}

}  // namespace chasqui
