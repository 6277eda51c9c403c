// The part of the Scheduler that decides who has which slot. Invariants kept here:
//   conservation  every running sequence holds exactly one slot of ledger_ and every cell that its next row needs
//   progress      a free slot goes to the most urgent that does not wait for a prefix; a request that was passed often
//                 enough is the most urgent (Overtaking)
#include <algorithm>
#include <utility>

#include "sched/scheduler.h"
#include "sched/slot_rules.h"

namespace chasqui {
namespace {

// Its context is shifted in this step: what moves up would be computed again for nothing.
bool shifts(const Sequence& sequence, const Batch& batch) {
  const auto of_this = [&](const SlotShift& shift) { return shift.request == sequence.id(); };
  return std::ranges::any_of(batch.shifts, of_this);
}

}  // namespace

// Each running sequence can compute one row more. Where the cells do not suffice, the least urgent and newest goes.
void Scheduler::reserve_next_cells(TimePoint now, Batch& batch) {
  if (!ledger_.unified()) {
    for (const auto& sequence : running_) ledger_.reserve(sequence->slot(), sequence->length());
    return;
  }
  const auto goes_first = [&](const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
    if (shifts(*a, batch) != shifts(*b, batch)) return shifts(*a, batch);
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
  while (const std::optional<Start> next = next_to_start(urgency, now, batch)) {
    const Reuse::Prefix& prefix = next->prefix;
    const SlotId slot = take_slot(*next->sequence, prefix, batch);
    std::unique_ptr<Sequence> sequence = waiting_.remove(next->sequence->id());
    const Request& request = sequence->request();
    // The whole prompt at once: a tenant that starts much gets its due before the first of it is computed.
    if (!sequence->started()) {
      const auto tokens = static_cast<TokenCount>(request.prompt.size());
      const TokenCount cached = std::min(prefix.match.length, tokens);
      counters_.charge_prompt(request.tenant, tokens, cached);
      groups_.charge_prompt(request, tokens, cached);
    }
    const bool tells = request.tell_progress && !sequence->started() && sequence->generated() == 0;
    const bool starved = overtaking_.is_starved(*sequence);
    overtaking_.starts(*sequence, waiting_);
    sequence->start(slot, now, starved);
    sequence->begins_with(next->use);
    reuse_.started(*sequence, prefix, now);
    if (prefix.match.length > 0) bring_prefix(*sequence, prefix, batch);
    if (tells) tell_progress(*sequence, now);
    tells_before_step_ = tells_before_step_ || tells;
    insert_running(std::move(sequence));
  }
}

SlotId Scheduler::take_slot(const Sequence& next, const Reuse::Prefix& prefix, Batch& batch) {
  if (!prefix.in_place) {
    const SlotId slot = free_slot_beside_running();
    CHECK(ledger_.take(slot, next.length()));
    return slot;
  }
  reuse_.take_slot(prefix.slot);
  ledger_.take_cached(prefix.slot, next.length(), prefix.match.length);
  const std::vector<MovedText::Gap>& gaps = prefix.moved.gaps;
  batch.reuses.push_back({next.id(), prefix.slot, gaps.empty() ? prefix.match.length : prefix.moved.end});
  for (const auto& [from, to] : gaps) batch.shifts.push_back({next.id(), prefix.slot, from, to});
  return prefix.slot;
}

// Where slots are to be adjacent, between the slots of running sequences or as near to them as there is one.
SlotId Scheduler::free_slot_beside_running() const {
  if (!config_.dense_slots || running_.empty()) return ledger_.lowest_free_slot();
  const SlotId first = running_.front()->slot();
  const SlotId last = running_.back()->slot();
  SlotId best;
  std::int32_t least = ledger_.slots_total();
  for (SlotId slot{0}; slot.value < ledger_.slots_total(); ++slot.value) {
    const std::int32_t away = std::max({0, first.value - slot.value, slot.value - last.value});
    if (!ledger_.is_free(slot) || away >= least) continue;
    best = slot;
    least = away;
  }
  return best;
}

// Null when all that wait had better wait on. Marks those that have to wait for the prefix of another one.
const Sequence* Scheduler::most_urgent(const Urgency& urgency) {
  const Sequence* best = nullptr;
  Standing standing_of_best;
  for (const auto& sequence : waiting_.all()) {
    const Standing standing = urgency.of(*sequence);
    if (best != nullptr && !urgency.slot_before(standing, standing_of_best)) continue;
    if (reuse_.waits(*sequence, running_)) continue;
    best = sequence.get();
    standing_of_best = standing;
  }
  if (best == nullptr || !reuse_.should_defer(*best, running_, step_time_.measured_row_seconds())) return best;
  return most_urgent_behind(standing_of_best, urgency);
}

// … of those behind one that waits, while all before it do. Of thousands that begin alike all wait: they are put in
// order once, since to look for each of them among all others would take seconds.
const Sequence* Scheduler::most_urgent_behind(const Standing& first, const Urgency& urgency) {
  using Place = std::pair<Standing, const Sequence*>;
  std::vector<Place> line;
  for (const auto& sequence : waiting_.all()) {
    const Standing standing = urgency.of(*sequence);
    if (!urgency.slot_before(first, standing) || reuse_.waits(*sequence, running_)) continue;
    line.emplace_back(standing, sequence.get());
  }
  const auto after = [&](const Place& a, const Place& b) { return urgency.slot_before(b.first, a.first); };
  std::ranges::make_heap(line, after);
  for (; !line.empty(); line.pop_back()) {
    std::ranges::pop_heap(line, after);
    const Sequence& next = *line.back().second;
    if (!reuse_.should_defer(next, running_, step_time_.measured_row_seconds())) return &next;
  }
  return nullptr;
}

// Nothing when none can start now.
std::optional<Scheduler::Start> Scheduler::next_to_start(const Urgency& urgency, TimePoint now, Batch& batch) {
  if (waiting_.empty()) return std::nullopt;
  const bool cached = !ledger_.has_free_slot() && ledger_.slots_cached() > 0;
  if (!ledger_.has_free_slot() && !cached && !may_yield(now)) return std::nullopt;
  const Sequence* sequence = most_urgent(urgency);
  if (sequence == nullptr) return std::nullopt;
  if (!cached && !free_slot_for(*sequence, urgency, now, batch)) return std::nullopt;
  Start start{sequence};
  start.prefix = reuse_.choose(*sequence, step_time_.measured_row_seconds(), !cached, now);
  if (cached && !start.prefix.in_place && !free_cached_slot_beside(start.prefix.slot, now)) return std::nullopt;
  start.use = reuse_.explain(*sequence, start.prefix);
  if (!has_room_for(start.prefix)) {
    start.use = {.limit = CacheUse::Limit::no_room, .known = start.use.known};
    start.prefix = {};
  }
  return start;
}

// There is no free slot, but cached ones, and `except` is needed. False: one of them is being copied out, and is free
// soon.
bool Scheduler::free_cached_slot_beside(SlotId except, TimePoint now) {
  const SlotId slot = reuse_.give_away(now, except);
  if (!slot.valid()) return false;
  ledger_.release(slot);
  to_trim_.push_back(slot);
  return true;
}

// A snapshot is brought back whole before it is cut, so one pool must have the room for all of it.
bool Scheduler::has_room_for(const Reuse::Prefix& prefix) const {
  if (prefix.match.length == 0 || !ledger_.unified()) return true;
  return prefix.match.snapshot->tokens() <= ledger_.cells_total() - ledger_.cells_used();
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
  const auto of_tenant = [&](const auto& sequence) { return sequence->request().tenant.id == wants.tenant; };
  const SliceTerms terms{ledger_.slots_total(), last_swap_, std::ranges::none_of(running_, of_tenant)};
  const auto yields = [&](const Sequence& sequence) {
    if (shifts(sequence, batch)) return false;
    const Standing has = urgency.of(sequence);
    const double swap = reuse_.swap_seconds(sequence, step_time_.read_row_seconds());
    return urgency.yields_to(has, wants, slice_of(has, wants, swap, terms));
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
  double swaps = 0;
  while (!ledger_.has_free_slot() || ledger_.cells_free() < cells_needed(next, running_.size())) {
    std::size_t victim = running_.size();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (!yields(*running_[i])) continue;
      if (victim == running_.size() || urgency.yields_before(*running_[i], *running_[victim])) victim = i;
    }
    CHECK(victim < running_.size());
    if (running_[victim]->request().service_class <= next.request().service_class) {
      swaps += reuse_.swap_seconds(*running_[victim], step_time_.read_row_seconds());
    }
    preempt(victim, now, batch);
  }
  if (swaps > 0) last_swap_ = {now, swaps};
  return true;
}

void Scheduler::preempt(std::size_t place, TimePoint now, Batch& batch) {
  std::unique_ptr<Sequence> sequence = std::move(running_[place]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
  const bool partly_there = stop_restore(*sequence);
  const bool never_there = std::erase_if(batch.restores, [&](const SlotRestore& restore) {
                             return restore.request == sequence->id();  // it has only just started
                           }) > 0;
  if (never_there) sequence->not_restored();
  std::erase_if(batch.reuses, [&](const SlotReuse& reuse) { return reuse.request == sequence->id(); });
  std::erase_if(batch.shifts, [&](const SlotShift& shift) { return shift.request == sequence->id(); });
  reuse_.leaves(*sequence, batch);
  speculation_.preempted(sequence->id());
  if (sequence->computed() > 0 || partly_there) to_trim_.push_back(sequence->slot());
  ledger_.release(sequence->slot());
  sequence->preempt(now);
  ++preemptions_;
  waiting_.push(std::move(sequence));
}

void Scheduler::insert_running(std::unique_ptr<Sequence> sequence) {
  const auto place = std::find_if(running_.begin(), running_.end(),
                                  [&](const auto& other) { return other->slot() > sequence->slot(); });
  running_.insert(place, std::move(sequence));
}

}  // namespace chasqui
