// Invariants kept here:
//   one-terminal  finish() is the only maker of finished events, and a finished sequence leaves running_ at once
//   one-writer    only this file calls the changing members of Sequence
//   conservation  every running sequence holds exactly one slot of ledger_ and every cell that its next row needs
//   progress      a free slot goes to the most urgent; patience makes everybody urgent; each step advances somebody
#include "sched/scheduler.h"

#include <algorithm>

namespace chasqui {
namespace {

// In one pool: cells that are kept free for each running sequence when another one starts, so that it is not put aside
// again at once.
constexpr TokenCount kCellsAhead = 4;
// Moves before one step; each costs about a millisecond.
constexpr std::size_t kMovesPerStep = 4;
// A prompt with so little left is not worth moving out of the way of decoding sequences.
constexpr TokenCount kAboutToDecode = 64;
// How often those who wait are told where they stand.
constexpr Duration kAnnounceEvery = seconds(1);
// Weight of the newest sequence in the moving average of slot times.
constexpr double kNewestSlotTime = 0.1;

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config)
    : config_(config), ledger_(config.kv), plan_(config_.targets, config.rows_max, config.dense_slots) {
  CHECK(config_.rows_max > 0);
}

void Scheduler::add(RequestPtr request) {
  counters_.join(request->tenant);
  waiting_.push(std::make_unique<Sequence>(std::move(request)));
}

void Scheduler::cancel(RequestId id, TimePoint now) {
  if (auto sequence = waiting_.remove(id)) {
    finish(*sequence, FinishReason::cancelled, now);
  } else if (Sequence* running = find_running(id)) {
    finish(*running, FinishReason::cancelled, now);
    retire_finished();
  }
}

void Scheduler::cancel_all(TimePoint now) {
  while (!waiting_.empty()) finish(*waiting_.pop(), FinishReason::cancelled, now);
  for (const auto& sequence : running_) finish(*sequence, FinishReason::cancelled, now);
  retire_finished();
}

void Scheduler::next_batch(TimePoint now, Batch& batch) {
  batch.clear();
  expire(now);
  if (idle()) return;
  const Urgency urgency = this->urgency(now);
  reserve_next_cells(now);
  start_waiting(urgency, now);
  announce(urgency, now);
  batch.trims.swap(to_trim_);
  to_trim_.clear();
  close_holes(batch);
  plan_.plan(running_, urgency, step_time_, now, batch);
  CHECK(!batch.empty(), "progress: somebody runs and nothing is to be done");
}

Urgency Scheduler::urgency(TimePoint now) const {
  std::int64_t tokens = waiting_.tokens();
  for (const auto& sequence : running_) tokens += sequence->prefilling() ? sequence->left() : 0;
  const double row = step_time_.prompt_row_seconds();
  const std::chrono::duration<double> backlog(static_cast<double>(tokens) * row);
  return {config_.targets, config_.policy, counters_, now, std::chrono::duration_cast<Duration>(backlog), row};
}

void Scheduler::expire(TimePoint now) {
  while (auto sequence = waiting_.remove_expired(now)) finish(*sequence, FinishReason::deadline, now);
  for (const auto& sequence : running_) {
    if (sequence->request().deadline <= now) finish(*sequence, FinishReason::deadline, now);
  }
  retire_finished();
}

// Each running sequence can compute one row more. Where the cells do not suffice, the least urgent and newest goes.
void Scheduler::reserve_next_cells(TimePoint now) {
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
    preempt(static_cast<std::size_t>(victim));
    if (static_cast<std::size_t>(victim) < i) --i;
  }
}

void Scheduler::start_waiting(const Urgency& urgency, TimePoint now) {
  while (!waiting_.empty()) {
    const Sequence* next = next_to_start(urgency, now);
    if (next == nullptr) return;
    const auto slot = ledger_.take(next->length());
    CHECK(slot.has_value());
    std::unique_ptr<Sequence> sequence = waiting_.remove(next->id());
    const Request& request = sequence->request();
    // The whole prompt at once: a tenant that starts much gets its due before the first of it is computed.
    if (!sequence->started()) {
      counters_.charge_prompt(request.tenant, static_cast<TokenCount>(request.prompt.size()));
    }
    last_start_[static_cast<std::size_t>(request.service_class)] = now;
    sequence->start(*slot, now);
    insert_running(std::move(sequence));
  }
}

const Sequence* Scheduler::most_urgent(const Urgency& urgency, const Turns& turns) const {
  const auto turn = [&](const Sequence& s) { return turns[static_cast<std::size_t>(s.request().service_class)]; };
  const auto before = [&](const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
    return turn(*a) != turn(*b) ? turn(*a) : urgency.slot_before(*a, *b);
  };
  return std::min_element(waiting_.all().begin(), waiting_.all().end(), before)->get();
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
const Sequence* Scheduler::next_to_start(const Urgency& urgency, TimePoint now) {
  const Sequence* next = most_urgent(urgency, turns(urgency, now));
  if (make_place(*next, urgency)) return next;
  const Sequence* urgent = most_urgent(urgency, Turns{});
  const bool preempts = urgent != next && !ledger_.has_free_slot() && make_place(*urgent, urgency);
  return preempts ? urgent : nullptr;
}

// For `next` to start beside `others` running sequences.
TokenCount Scheduler::cells_needed(const Sequence& next, std::size_t others) const {
  if (!ledger_.unified() || others == 0) return next.length();
  return next.length() + kCellsAhead * static_cast<TokenCount>(others + 1);
}

// A slot and cells for `next`, at the cost of background work where it is allowed. False: it has to wait.
bool Scheduler::make_place(const Sequence& next, const Urgency& urgency) {
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
    preempt(victim);
  }
  return true;
}

void Scheduler::preempt(std::size_t place) {
  std::unique_ptr<Sequence> sequence = std::move(running_[place]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
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

void Scheduler::announce(const Urgency& urgency, TimePoint now) {
  if (waiting_.empty() || now - announced_ < kAnnounceEvery) return;
  announced_ = now;
  line_.clear();
  for (const auto& sequence : waiting_.all()) line_.push_back(sequence.get());
  std::sort(line_.begin(), line_.end(),
            [&](const Sequence* a, const Sequence* b) { return urgency.slot_before(*a, *b); });
  for (std::size_t i = 0; i < line_.size(); ++i) {
    Event event;
    event.request = line_[i]->id();
    event.kind = Event::Kind::queued;
    event.service_class = line_[i]->request().service_class;
    event.position = static_cast<std::int32_t>(i);
    event.wait = wait_behind(event.position);
    events_.push_back(std::move(event));
  }
}

void Scheduler::commit(const Batch& batch, const BatchResult& result) {
  if (result.status == DecodeStatus::ok) {
    if (plan_.one_run()) step_time_.observe(batch.kind, plan_.size(), result.compute);
    commit_parts(batch, result);
  } else if (result.status != DecodeStatus::aborted) {
    const Error error{ErrorCode::model_failure, "the model failed to compute this request", ""};
    for (const BatchPart& part : batch.parts) {
      Sequence* sequence = find_running(part.request->id);
      CHECK(sequence != nullptr, "a sequence left between next_batch() and commit()");
      finish(*sequence, FinishReason::error, result.finished, error);
    }
  }
  retire_finished();
}

void Scheduler::commit_parts(const Batch& batch, const BatchResult& result) {
  auto running = running_.begin();  // parts and running_ are both in the order of slots
  auto sample = result.samples.begin();
  for (const BatchPart& part : batch.parts) {
    while (running != running_.end() && (*running)->slot() < part.slot) ++running;
    CHECK(running != running_.end() && (*running)->slot() == part.slot,
          "a sequence left between next_batch() and commit()");
    Sequence& sequence = **running;
    sequence.computed_rows(part.rows, result.finished);
    ledger_.use(part.slot, part.rows);
    if (part.samples) {
      CHECK(sample != result.samples.end() && sample->request == sequence.id());
      commit_sample(sequence, *sample++, result.finished);
    } else if (sequence.left() == 0) {
      finish(sequence, FinishReason::length, result.finished);  // asked for no token at all
    }
  }
}

void Scheduler::commit_sample(Sequence& sequence, const Sample& sample, TimePoint now) {
  const bool first = sequence.generated() == 0;
  Event event;
  event.request = sequence.id();
  event.text = sample.text;
  event.tokens = 1;
  event.since_last = first ? Duration::zero() : now - sequence.last_token_at();
  event.service_class = sequence.request().service_class;
  events_.push_back(std::move(event));
  sequence.add_token(sample.token, now);
  counters_.charge_token(sequence.request().tenant);
  if (sample.end_of_generation || sample.stopped) {
    finish(sequence, FinishReason::stop, now);
    events_.back().stop_string = sample.stop_string;
  } else if (sequence.at_limit()) {
    finish(sequence, FinishReason::length, now);
  }
}

void Scheduler::finish(Sequence& sequence, FinishReason reason, TimePoint now, const Error& error) {
  Event event;
  event.request = sequence.id();
  event.kind = Event::Kind::finished;
  event.service_class = sequence.request().service_class;
  event.reason = reason;
  event.usage = sequence.usage(now);
  event.error = error;
  events_.push_back(std::move(event));
  if (sequence.started()) {
    const double held = to_seconds(now - sequence.started_at());
    slot_seconds_ += slot_seconds_ > 0 ? kNewestSlotTime * (held - slot_seconds_) : held;
  }
  counters_.leave(sequence.request().tenant);
  sequence.finish();
}

void Scheduler::retire_finished() {
  std::erase_if(running_, [this](const auto& sequence) {
    if (sequence->state() != Sequence::State::finished) return false;
    if (sequence->computed() > 0) to_trim_.push_back(sequence->slot());
    ledger_.release(sequence->slot());
    return true;
  });
}

Sequence* Scheduler::find_running(RequestId id) {
  const std::size_t place = place_of(id);
  return place < running_.size() ? running_[place].get() : nullptr;
}

std::size_t Scheduler::place_of(RequestId id) const {
  const auto found =
      std::find_if(running_.begin(), running_.end(), [id](const auto& sequence) { return sequence->id() == id; });
  return static_cast<std::size_t>(found - running_.begin());
}

void Scheduler::take_events(std::vector<Event>& events) {
  events.insert(events.end(), std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
  events_.clear();
}

// Slots come free one by one, each after the time that a sequence holds its slot.
Duration Scheduler::wait_behind(std::int32_t others) const {
  const std::chrono::duration<double> wait(slot_seconds_ * (others + 1) / ledger_.slots_total());
  return std::chrono::duration_cast<Duration>(wait);
}

Load Scheduler::load() const {
  Load load;
  load.slots = ledger_.slots_total();
  load.running = static_cast<std::int32_t>(running_.size());
  load.waiting_tokens = waiting_.tokens();
  load.slot_time = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(slot_seconds_));
  std::int32_t ahead = 0;
  for (std::size_t c = 0; c < kServiceClasses; ++c) {
    load.waiting[c] = waiting_.of_class(static_cast<ServiceClass>(c));
    ahead += load.waiting[c];
    if (ahead > 0 || !ledger_.has_free_slot()) load.wait[c] = wait_behind(ahead);
  }
  return load;
}

bool Scheduler::consistent() const {
  if (!ledger_.conserved()) return false;
  if (ledger_.slots_used() != static_cast<std::int32_t>(running_.size())) return false;
  TokenCount used = 0;
  SlotId previous{-1};
  for (const auto& sequence : running_) {
    if (sequence->slot() <= previous || !(sequence->prefilling() || sequence->decoding())) return false;
    previous = sequence->slot();
    used += sequence->computed();
  }
  return used == ledger_.cells_used();
}

}  // namespace chasqui
