// The part of the Scheduler that decides who has which slot. Invariants kept here:
//   conservation  every running sequence holds exactly one slot of ledger_ and every cell that its next row needs
//   progress      a free slot goes to the most urgent that does not wait for a prefix; a request that was passed often
//                 enough is the most urgent (Overtaking)
#include <algorithm>

#include "sched/scheduler.h"
#include "sched/slot_rules.h"

namespace chasqui {
namespace {

// Moves before one step; each costs about a millisecond.
constexpr std::size_t kMovesPerStep = 4;
// A prompt with so little left is not worth moving out of the way of decoding sequences.
constexpr TokenCount kAboutToDecode = 64;

}  // namespace

// Each running sequence can compute one row more. Where the cells do not suffice, the least urgent and newest goes.
void Scheduler::reserve_next_cells(TimePoint now, Batch& batch) {
  if (!ledger_.unified()) {
    for (const auto& sequence : running_) ledger_.reserve(sequence->slot(), sequence->length());
    return;
  }
  const auto goes_first = [](const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
    const ServiceClass class_a = a->request().service_class;
    const ServiceClass class_b = b->request().service_class;
    return class_a != class_b ? class_a < class_b : a->id() < b->id();
  };
  for (std::size_t i = 0; i < running_.size();) {
    if (ledger_.reserve(running_[i]->slot(), running_[i]->length())) {
      ++i;
      continue;
    }
    const auto victim = std::max_element(running_.begin(), running_.end(), goes_first) - running_.begin();
    preempt(static_cast<std::size_t>(victim), now, batch);
    if (static_cast<std::size_t>(victim) < i) --i;
  }
}

void Scheduler::start_waiting(const Urgency& urgency, TimePoint now, Batch& batch) {
  while (!waiting_.empty()) {
    const Sequence* next = next_to_start(urgency, now, batch);
    if (next == nullptr) return;
    const auto slot = ledger_.take(next->length());
    CHECK(slot.has_value());
    std::unique_ptr<Sequence> sequence = waiting_.remove(next->id());
    const Request& request = sequence->request();
    CacheUse use;
    const PrefixCache::Match match = cached_prefix(*sequence, use);
    // The whole prompt at once: a tenant that starts much gets its due before the first of it is computed.
    if (!sequence->started()) {
      counters_.charge_prompt(request.tenant, static_cast<TokenCount>(request.prompt.size()), match.length);
    }
    const bool tells = request.tell_reading && !sequence->started();
    const bool due = overtaking_.is_due(*sequence);
    overtaking_.starts(*sequence, waiting_);
    sequence->start(*slot, now, due);
    sequence->begins_with(use);
    reuse_.started(*sequence, match, now);
    if (match.length > 0) {
      sequence->restored(match.length);
      ledger_.use(*slot, match.length);
      batch.restores.push_back({sequence->id(), *slot, match.snapshot, match.length});
    }
    if (tells) tell_reading(*sequence, now);
    tells_before_step_ = tells_before_step_ || tells;
    insert_running(std::move(sequence));
  }
}

// A snapshot is brought back whole before it is cut, so one pool must have the room for all of it.
PrefixCache::Match Scheduler::cached_prefix(const Sequence& sequence, CacheUse& use) {
  PrefixCache::Match match = reuse_.find(sequence, step_time_.prompt_row_seconds());
  use = reuse_.explain(sequence, match);
  if (match.length == 0 || !ledger_.unified()) return match;
  if (match.snapshot->tokens() <= ledger_.cells_total() - ledger_.cells_used()) return match;
  use = {.limit = CacheUse::Limit::no_room, .known = use.known};
  return {};
}

// Null when all that wait had better wait on. Marks those that have to wait for the prefix of another one.
const Sequence* Scheduler::most_urgent(const Urgency& urgency) {
  for (;;) {
    const Sequence* best = nullptr;
    Standing standing_of_best;
    for (const auto& sequence : waiting_.all()) {
      const Standing standing = urgency.of(*sequence);
      if (best != nullptr && !urgency.slot_before(standing, standing_of_best)) continue;
      if (reuse_.waits(*sequence, running_)) continue;
      best = sequence.get();
      standing_of_best = standing;
    }
    if (best == nullptr || !reuse_.should_defer(*best, running_, step_time_.prompt_row_seconds())) return best;
  }
}

// Null when none can start now.
const Sequence* Scheduler::next_to_start(const Urgency& urgency, TimePoint now, Batch& batch) {
  // A slot that is only being copied out is free soon.
  if (!ledger_.has_free_slot() && (!kept_.empty() || !may_yield(now))) return nullptr;
  const Sequence* next = most_urgent(urgency);
  return next != nullptr && free_slot_for(*next, urgency, now, batch) ? next : nullptr;
}

// Whether any running sequence might give up its slot for any that waits: looked at first, since it is quick.
bool Scheduler::may_yield(TimePoint now) const {
  std::size_t urgent = 0;
  while (urgent + 1 < kServiceClasses && waiting_.of_class(static_cast<ServiceClass>(urgent)) == 0) ++urgent;
  return std::any_of(running_.begin(), running_.end(), [&](const auto& sequence) {
    return static_cast<std::size_t>(sequence->request().service_class) > urgent ||
           now - sequence->slot_since() >= kSliceLeast;
  });
}

// For `next` to start beside `others` running sequences.
TokenCount Scheduler::cells_needed(const Sequence& next, std::size_t others) const {
  return cells_to_start(next.length(), others, ledger_.unified());
}

// A slot and cells for `next`, at the cost of those that have had their share. False: it has to wait.
bool Scheduler::free_slot_for(const Sequence& next, const Urgency& urgency, TimePoint now, Batch& batch) {
  const Standing wants = urgency.of(next);
  const auto yields = [&](const Sequence& sequence) {
    const Standing has = urgency.of(sequence);
    const double swap = reuse_.swap_seconds(sequence, step_time_.prompt_row_seconds());
    return urgency.yields_to(has, wants, slice_of(has, wants, swap, ledger_.slots_total()));
  };
  TokenCount could_free = ledger_.cells_free();
  bool slot = ledger_.has_free_slot();
  std::size_t others = running_.size();
  for (const auto& sequence : running_) {
    if (!yields(*sequence)) continue;
    slot = true;
    --others;
    could_free += ledger_.unified() ? ledger_.reserved(sequence->slot()) : 0;
  }
  if (!slot || could_free < cells_needed(next, others)) return false;
  while (!ledger_.has_free_slot() || ledger_.cells_free() < cells_needed(next, running_.size())) {
    std::size_t victim = running_.size();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (!yields(*running_[i])) continue;
      if (victim == running_.size() || urgency.yields_before(*running_[i], *running_[victim])) victim = i;
    }
    CHECK(victim < running_.size());
    preempt(victim, now, batch);
  }
  return true;
}

void Scheduler::preempt(std::size_t place, TimePoint now, Batch& batch) {
  std::unique_ptr<Sequence> sequence = std::move(running_[place]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
  const bool never_there = std::erase_if(batch.restores, [&](const SlotRestore& restore) {
                             return restore.request == sequence->id();  // it has only just started
                           }) > 0;
  if (never_there) sequence->not_restored();
  reuse_.leaves(*sequence, batch);
  speculation_.preempted(sequence->id());
  if (sequence->computed() > 0) to_trim_.push_back(sequence->slot());
  ledger_.release(sequence->slot());
  sequence->preempt(now);
  ++preemptions_;
  waiting_.push(std::move(sequence));
}

// Brings the decoding sequences into the slots 0 … n-1: with a hole in their ids, rows would be computed in two passes
// over the weights instead of one. Who is still prefilling makes room, unless it is about to decode itself.
void Scheduler::close_holes(Batch& batch) {
  if (!config_.dense_slots || !config_.targets.rules.dense_slots) return;
  for (SlotId slot{0}; batch.moves.size() < kMovesPerStep; ++slot.value) {
    const auto last = std::find_if(running_.rbegin(), running_.rend(), [](const auto& s) { return s->decoding(); });
    if (last == running_.rend() || (*last)->slot() <= slot) return;
    const auto holder =
        std::find_if(running_.begin(), running_.end(), [slot](const auto& s) { return !(s->slot() < slot); });
    const RequestId last_id = (*last)->id();
    if (std::find(kept_.begin(), kept_.end(), slot) != kept_.end()) continue;
    if ((*holder)->slot() == slot) {
      if ((*holder)->decoding() || (*holder)->left() <= kAboutToDecode || !ledger_.has_free_slot()) continue;
      if (batch.moves.size() + 2 > kMovesPerStep) return;
      move(static_cast<std::size_t>(holder - running_.begin()), ledger_.highest_free_slot(), batch);
    }
    move(place_of(last_id), slot, batch);
  }
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

void Scheduler::insert_running(std::unique_ptr<Sequence> sequence) {
  const auto place = std::find_if(running_.begin(), running_.end(),
                                  [&](const auto& other) { return other->slot() > sequence->slot(); });
  running_.insert(place, std::move(sequence));
}

}  // namespace chasqui
