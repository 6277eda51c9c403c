// The part of the Scheduler that decides who has which slot. Invariants kept here:
//   conservation  every running sequence holds exactly one slot of ledger_ and every cell that its next row needs
//   progress      a free slot goes to the most urgent who does not wait for a prefix; patience makes everybody urgent
#include <algorithm>

#include "sched/scheduler.h"

namespace chasqui {
namespace {

// In one pool: cells that are kept free for each running sequence when another one starts, so that it is not put aside
// again at once.
constexpr TokenCount kCellsAhead = 4;
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
  const Urgency urgency = this->urgency(now);
  const auto goes_first = [&](const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
    const int level_a = urgency.level(*a);
    const int level_b = urgency.level(*b);
    return level_a != level_b ? level_a < level_b : a->id() < b->id();
  };
  for (std::size_t i = 0; i < running_.size();) {
    if (ledger_.reserve(running_[i]->slot(), running_[i]->length())) {
      ++i;
      continue;
    }
    const auto victim = std::max_element(running_.begin(), running_.end(), goes_first) - running_.begin();
    preempt(static_cast<std::size_t>(victim), batch);
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
    const PrefixCache::Match match = cached_prefix(*sequence);
    // The whole prompt at once: a tenant that starts much gets its due before the first of it is computed.
    if (!sequence->started()) {
      counters_.charge_prompt(request.tenant, static_cast<TokenCount>(request.prompt.size()), match.length);
    }
    last_start_[static_cast<std::size_t>(request.service_class)] = now;
    sequence->start(*slot, now);
    reuse_.started(*sequence, match, now);
    if (match.length > 0) {
      sequence->restored(match.length);
      ledger_.use(*slot, match.length);
      batch.restores.push_back({sequence->id(), *slot, match.snapshot, match.length});
    }
    insert_running(std::move(sequence));
  }
}

// A snapshot is brought back whole before it is cut, so one pool must have the room for all of it.
PrefixCache::Match Scheduler::cached_prefix(const Sequence& sequence) {
  PrefixCache::Match match = reuse_.find(sequence, step_time_.prompt_row_seconds());
  if (match.length == 0 || !ledger_.unified()) return match;
  return match.snapshot->tokens() <= ledger_.cells_total() - ledger_.cells_used() ? match : PrefixCache::Match{};
}

// Null when all that wait had better wait on. Marks those who have to wait for somebody else's prefix.
const Sequence* Scheduler::most_urgent(const Urgency& urgency, const Turns& turns) {
  const auto turn = [&](const Sequence& s) { return turns[static_cast<std::size_t>(s.request().service_class)]; };
  for (;;) {
    const Sequence* best = nullptr;
    for (const auto& sequence : waiting_.all()) {
      if (reuse_.waits(*sequence, running_)) continue;
      const bool first =
          best == nullptr || (turn(*sequence) != turn(*best) ? turn(*sequence) : urgency.slot_before(*sequence, *best));
      if (first) best = sequence.get();
    }
    if (best == nullptr || !reuse_.had_better_wait(*best, running_, step_time_.prompt_row_seconds())) return best;
  }
}

// Classes that go before the others for once: somebody there is out of patience, and none of them has had a slot for
// the time in which all of them should.
Scheduler::Turns Scheduler::turns(const Urgency& urgency, TimePoint now) const {
  Turns turns{};
  if (!urgency.takes_turns()) return turns;
  for (const auto& sequence : waiting_.all()) {
    const auto c = static_cast<std::size_t>(sequence->request().service_class);
    if (turns[c] || now - last_start_[c] < config_.targets.of[c].first_token) continue;
    turns[c] = urgency.out_of_patience(*sequence);
  }
  return turns;
}

// Null when nobody can start now. A turn is for a slot that is free; it does not keep others from preempting.
const Sequence* Scheduler::next_to_start(const Urgency& urgency, TimePoint now, Batch& batch) {
  const auto background = [](const auto& s) { return s->request().service_class == ServiceClass::background; };
  if (!ledger_.has_free_slot() && std::none_of(running_.begin(), running_.end(), background)) return nullptr;
  const Sequence* next = most_urgent(urgency, turns(urgency, now));
  if (next == nullptr || make_place(*next, urgency, batch)) return next;
  if (ledger_.has_free_slot()) return nullptr;
  const Sequence* urgent = most_urgent(urgency, Turns{});
  return urgent != nullptr && urgent != next && make_place(*urgent, urgency, batch) ? urgent : nullptr;
}

// For `next` to start beside `others` running sequences.
TokenCount Scheduler::cells_needed(const Sequence& next, std::size_t others) const {
  if (!ledger_.unified() || others == 0) return next.length();
  return next.length() + kCellsAhead * static_cast<TokenCount>(others + 1);
}

// A slot and cells for `next`, at the cost of background work where it is allowed. False: it has to wait.
bool Scheduler::make_place(const Sequence& next, const Urgency& urgency, Batch& batch) {
  TokenCount could_free = ledger_.cells_free();
  bool slot = ledger_.has_free_slot();
  std::size_t others = running_.size();
  for (const auto& sequence : running_) {
    if (!urgency.yields_to(*sequence, next)) continue;
    slot = true;
    --others;
    could_free += ledger_.unified() ? ledger_.reserved(sequence->slot()) : 0;
  }
  if (!slot || could_free < cells_needed(next, others)) return false;
  while (!ledger_.has_free_slot() || ledger_.cells_free() < cells_needed(next, running_.size())) {
    std::size_t victim = running_.size();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (!urgency.yields_to(*running_[i], next)) continue;
      if (victim == running_.size() || running_[i]->id() > running_[victim]->id()) victim = i;
    }
    CHECK(victim < running_.size());
    preempt(victim, batch);
  }
  return true;
}

void Scheduler::preempt(std::size_t place, Batch& batch) {
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
  sequence->preempt();
  ++preemptions_;
  waiting_.push(std::move(sequence));
}

// Brings the decoding sequences into the slots 0 … n-1: with a hole in their ids, rows would be computed in two passes
// over the weights instead of one. Who is still prefilling makes room, unless it is about to decode itself.
void Scheduler::close_holes(Batch& batch) {
  if (!config_.dense_slots) return;
  for (SlotId slot{0}; batch.moves.size() < kMovesPerStep; ++slot.value) {
    const auto last = std::find_if(running_.rbegin(), running_.rend(), [](const auto& s) { return s->decoding(); });
    if (last == running_.rend() || (*last)->slot() <= slot) return;
    const auto holder =
        std::find_if(running_.begin(), running_.end(), [slot](const auto& s) { return !(s->slot() < slot); });
    const RequestId last_id = (*last)->id();
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
