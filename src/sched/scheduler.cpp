// Invariants kept here:
//   one-terminal  finish() is the only maker of finished events, and a finished sequence leaves running_ at once
//   one-writer    only the files of this class call the changing members of Sequence
//   progress      each step advances a sequence, or copies out what a request waits for
#include "sched/scheduler.h"

#include <algorithm>
#include <optional>

#include "core/put_off.h"

namespace chasqui {

namespace {

// Parts of the configuration whose answers a tap sees, too.
template <class Part>
Part tapped(Part part, SchedulerTap* tap) {
  part.tap = tap;
  return part;
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config)
    : config_(config),
      ledger_(config.kv),
      reuse_(tapped(config.reuse, config.tap)),
      step_time_(config.targets.rules.slowdown),
      speculation_(tapped(config.speculation, config.tap)),
      plan_({config.targets, config.rows_max, config.kv, config.dense_slots, config.cuts_steps, config.cuts_joined}),
      adapter_turns_(config_.targets),
      projection_(config.targets, config.kv) {
  CHECK(config_.rows_max > 0);
}

void Scheduler::add(RequestPtr request) {
  if (config_.tap != nullptr) config_.tap->added(*request);
  if (waiting_.empty() && running_.empty()) plan_.rests();
  counters_.join(request->tenant);
  groups_.join(*request);
  const Duration wait = wait_of(*request);
  ++forecast_.newer;
  newer_tokens_ += request->tokens();
  waiting_.push(std::make_unique<Sequence>(std::move(request), wait));
}

void Scheduler::cancel(RequestId id, TimePoint now, FinishReason reason) {
  if (config_.tap != nullptr) config_.tap->cancelled(id, now, reason);
  if (auto sequence = waiting_.remove(id)) {
    finish(*sequence, reason, now);
  } else if (Sequence* running = find_running(id)) {
    finish(*running, reason, now);
    retire_finished(Keep::what_is_worth_it);
  }
}

void Scheduler::cancel_all(TimePoint now) {
  if (config_.tap != nullptr) config_.tap->all_cancelled(now);
  end_all(FinishReason::cancelled, {}, now);
}

void Scheduler::fail_all(const Error& error, TimePoint now) {
  if (config_.tap != nullptr) config_.tap->all_failed(error, now);
  end_all(FinishReason::error, error, now);
}

void Scheduler::end_all(FinishReason reason, const Error& error, TimePoint now) {
  while (!waiting_.empty()) finish(*waiting_.pop(), reason, now, error);
  for (const auto& sequence : running_) finish(*sequence, reason, now, error);
  retire_finished(Keep::nothing);  // no request can come back for it, or the server ends
}

void Scheduler::next_batch(TimePoint now, Batch& batch) {
  plan_step(now, batch);
  if (config_.tap != nullptr) config_.tap->planned(now, batch);
}

void Scheduler::plan_step(TimePoint now, Batch& batch) {
  batch.clear();
  waits_for_disk_ = waits_for_units_ = false;
  tells_before_step_ = false;
  planned_ = now_ = now;
  reuse_.free_some();
  if (reuse_.disk() != nullptr) reuse_.disk()->look_at_reads(now);
  expire(now);
  copy_ahead(now);
  if (idle()) return;
  if (reuse_.has_saves()) {
    // In a step of their own, so that the next request to start finds them.
    reuse_.take_saves(running_, batch);
    return;
  }
  const Urgency urgency = this->urgency(now);
  shift_full(now, batch);
  if (idle()) return;
  reserve_next_cells(now, batch);
  start_waiting(urgency, now, batch);
  announce(urgency, now);
  if (running_.empty() && reuse_.has_pieces()) return copy_pieces(batch);
  if (running_.empty()) {
    CHECK(reuse_.disk() != nullptr && reuse_.disk()->reads(), "progress: no request starts, without a reason");
    waits_for_disk_ = true;
    return;
  }
  batch.trims.swap(to_trim_);
  to_trim_.clear();
  take_restores(batch);
  order_units();  // also of those whose prefix is complete just now
  if (all_await_units()) {
    if (reuse_.has_pieces()) copy_pieces(batch);
    waits_for_units_ = batch.empty();
    return;
  }
  batch.adapters = adapter_turns_.next(running_, now);
  if (adapter_turns_.several()) {
    bring_sets_together(batch);
  } else {
    close_holes(batch);
  }
  const TokenCount cells = ledger_.unified() ? ledger_.cells_free() : ledger_.cells_total();
  cached_.clear();
  for (const CachedSlots::Kept& kept : reuse_.slots().all()) cached_.push_back(kept.slot);
  plan_.spare(cached_);
  plan_.plan(running_, urgency, step_time_, speculation_, cells, now, batch);
  if (ledger_.slots_used() == ledger_.slots_total()) batch.cut_by = std::min(batch.cut_by, least_urgent_running() - 1);
  reserve_draft_tokens(batch);
  copy_pieces(batch);
  place_shifts(batch);
  CHECK(!batch.empty(), "progress: a sequence runs and nothing is to be done");
}

// Of each sequence the next one, while it reads the text before it. What comes later may be in a cache by then.
void Scheduler::order_units() {
  if (!config_.encodes) return;
  for (const auto& sequence : running_) {
    const MediaUnit* const unit = sequence->unit_to_order();
    if (unit == nullptr) continue;
    sequence->order_unit(unit->begin);
    encoding_orders_.push_back({sequence->shared_request(), unit->begin});
  }
}

bool Scheduler::all_await_units() const {
  return config_.encodes && std::ranges::all_of(running_, [](const auto& sequence) { return sequence->awaits_unit(); });
}

// An arrival that would not get a slot has nothing from a step that is cut.
int Scheduler::least_urgent_running() const {
  int least = 0;
  for (const auto& sequence : running_) least = std::max(least, static_cast<int>(sequence->request().service_class));
  return least;
}

// The plan has seen to it that there are cells.
void Scheduler::reserve_draft_tokens(const Batch& batch) {
  for (const BatchPart& part : batch.parts) {
    if (part.draft_tokens == 0) continue;
    const TokenCount end = batch.rows[static_cast<std::size_t>(part.last_row())].position + 1 + part.draft_tokens;
    CHECK(ledger_.reserve(part.slot, end), "conservation: no cells for draft tokens");
  }
}

// Tokens to prefill before all requests here can be answered.
std::int64_t Scheduler::tokens_to_prefill() const {
  std::int64_t tokens = waiting_.tokens();
  for (const auto& sequence : running_) tokens += sequence->prefilling() ? sequence->left() : 0;
  return tokens;
}

Urgency Scheduler::urgency(TimePoint now) const {
  const double row = step_time_.prompt_row_seconds();
  const std::chrono::duration<double> backlog(static_cast<double>(tokens_to_prefill()) * row);
  return {config_.targets,
          *config_.policy,
          counters_,
          groups_,
          overtaking_,
          now,
          std::chrono::duration_cast<Duration>(backlog),
          row};
}

void Scheduler::expire(TimePoint now) {
  while (auto sequence = waiting_.remove_expired(now)) end_late(*sequence, now);
  for (const auto& sequence : running_) {
    if (sequence->expires() <= now) end_late(*sequence, now);
  }
  retire_finished(Keep::what_is_worth_it);
}

// At its deadline a sequence ends with what there is. One that has waited too long has nothing, so it fails.
void Scheduler::end_late(Sequence& sequence, TimePoint now) {
  if (sequence.deadline() <= now) return finish(sequence, FinishReason::deadline, now);
  const Request& request = sequence.request();
  Error error{ErrorCode::overloaded, "queue timeout: no slot was free in time (--queue-timeout); retry", ""};
  if (request.first_token_deadline <= now) error.message = "no first token within ttft_timeout_ms; retry";
  error.retry_after = std::clamp<Duration>(wait_of(request), seconds(1), seconds(60));
  finish(sequence, FinishReason::error, now, error);
}

void Scheduler::commit(const Batch& batch, const BatchResult& result) {
  if (config_.tap != nullptr) config_.tap->computed(batch, result);
  commit_step(batch, result);
  if (config_.tap != nullptr) config_.tap->committed(occupancy());
}

void Scheduler::commit_step(const Batch& batch, const BatchResult& result) {
  now_ = result.finished;
  plan_.ended(batch, result);
  reuse_.commit(batch, result, step_time_.measured_row_seconds(), result.finished);
  release_sources(batch);
  for (const std::size_t i : result.not_restored) {
    Sequence* sequence = find_running(batch.restores[i].request);
    CHECK(sequence != nullptr, "a sequence left between next_batch() and commit()");
    stop_restore(*sequence);
    ledger_.unuse(sequence->slot());
    sequence->not_restored();
  }
  if (!result.not_restored.empty()) undo_shifts(batch);
  if (batch.rows.empty()) return copy_ahead(result.finished);
  if (!batch.drafting.empty()) speculation_.drafted(result);
  if (result.status == DecodeStatus::ok) {
    step_time_.constrained(result.constrained_tokens, result.constraining);
    const bool decoded = batch.kind == Batch::Kind::decode;
    // What heads learn of a prompt is part of reading it. In a decode step it is part of their draft tokens.
    const Duration computing = result.compute + (decoded ? Duration::zero() : result.learning);
    const Duration took = adapter_turns_.computed(computing, batch.predicted);
    const bool rare =
        !batch.shifts.empty() || (decoded && plan_.turns() && step_time_.settled(batch.kind, plan_.size().rows));
    if (decoded) note_decoding(result, batch.parts.size());
    if (plan_.one_pass() && !rare) step_time_.observe(batch.kind, plan_.size(), took);
    if (decoded) speculation_.computed(result, took);
    commit_parts(batch, result);
  } else if (result.status != DecodeStatus::aborted) {
    const Error error{ErrorCode::model_failure, "the model failed to compute this request", ""};
    for (const BatchPart& part : batch.parts) {
      Sequence* sequence = find_running(part.request->id);
      CHECK(sequence != nullptr, "a sequence left between next_batch() and commit()");
      finish(*sequence, FinishReason::error, result.finished, error);
    }
    return retire_finished(Keep::nothing);
  }
  retire_finished(Keep::what_is_worth_it);
  reuse_.step_computed(running_);
  copy_ahead(result.finished);
}

void Scheduler::commit_parts(const Batch& batch, const BatchResult& result) {
  auto running = running_.begin();  // parts and running_ are both in the order of slots
  auto sample = result.samples.begin();
  auto prompt = result.prompts.begin();
  auto put_off = result.put_off.begin();
  const auto all_rows = static_cast<Duration::rep>(batch.rows.size()) - batch.padding;
  for (const BatchPart& part : batch.parts) {
    while (running != running_.end() && (*running)->slot() < part.slot) ++running;
    CHECK(running != running_.end() && (*running)->slot() == part.slot,
          "a sequence left between next_batch() and commit()");
    Sequence& sequence = **running;
    if (batch.unit != nullptr && sequence.computed() == batch.unit->begin) sequence.began_unit(result.encoded);
    const bool waits = put_off != result.put_off.end() && *put_off == sequence.id();
    const TokenCount rows = part.rows - (waits ? rows_put_off(part) : 0);
    if (waits) ++put_off;
    sequence.computed_rows(rows, result.finished);
    std::optional<double> joules;
    if (result.joules) joules = *result.joules * part.all_rows() / static_cast<double>(all_rows);
    sequence.took_part(rows, batch.parts.size() > 1, planned_, result.cpu * part.all_rows() / all_rows, joules);
    if (rows == 0) continue;
    ledger_.use(part.slot, rows);
    if (sequence.at_checkpoint()) reuse_.checkpoint_computed(sequence);
    if (sequence.request().tell_progress && sequence.generated() == 0) tell_progress(sequence, result.finished);
    if (part.tells) tell_prompt(sequence, *prompt++);
    if (part.samples && !waits) {
      sample = commit_samples(sequence, part, sample, result.samples.end(), result.finished);
    } else if (sequence.left() == 0) {
      finish(sequence, FinishReason::length, result.finished);  // asked for no token at all
    }
  }
}

// One token, and another one for each draft token that was accepted: its row is computed then. Behind them, what a
// grammar forces: its rows are those of the next steps.
Scheduler::Samples Scheduler::commit_samples(Sequence& sequence, const BatchPart& part, Samples next, Samples end,
                                             TimePoint now) {
  const RequestId id = sequence.id();
  const auto last = std::find_if(next, end, [id](const Sample& sample) { return sample.request != id; });
  const auto behind = std::find_if(next, last, [](const Sample& sample) { return !sample.computed; });
  const auto accepted = static_cast<TokenCount>(behind - next);
  CHECK(behind != last && accepted <= part.draft_tokens, "a token for the row, and one for each accepted draft token");
  sequence.drafted(part.draft_tokens, accepted);
  for (; next != behind; ++next) {
    commit_sample(sequence, *next, now);
    sequence.computed_rows(1, now);
    ledger_.use(part.slot, 1);
  }
  commit_sample(sequence, *next, now);
  speculation_.commit(sequence, part.draft_tokens, accepted + 1);
  while (++next != last) commit_sample(sequence, *next, now);
  return last;
}

void Scheduler::commit_sample(Sequence& sequence, const Sample& sample, TimePoint now) {
  const bool first = !sequence.has_spoken();
  Event& event = events_.emplace_back();
  event.request = sequence.id();
  event.text = sample.text;
  event.chances = sample.chances;
  event.token = sample.token;
  event.tokens = 1;
  event.since_last = first ? Duration::zero() : now - sequence.last_token_at();
  event.service_class = sequence.request().service_class;
  if (first) {
    reuse_.checkpoint_computed(sequence);
    note_first_token(sequence, event, now);
  }
  sample.forced ? sequence.add_forced_token(sample.token, now) : sequence.add_token(sample.token, now);
  if (sequence.request().tell_usage) events_.back().usage = sequence.usage(now);
  counters_.charge_token(sequence.request().tenant);
  groups_.charge_token(sequence.request());
  if (sample.end_of_generation || sample.stopped) {
    finish(sequence, FinishReason::stop, now);
    events_.back().stop_string = sample.stop_string;
  } else if (sequence.at_limit() || sample.time_is_up || sample.outdented) {
    finish(sequence, FinishReason::length, now);
    events_.back().time_is_up = sample.time_is_up;
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
  if (sequence.request().keep_tokens) event.generated = sequence.generated_tokens();
  event.chunks = sequence.chunks();
  events_.push_back(std::move(event));
  if (sequence.started()) {
    const bool limit = !sequence.request().limited_by_context;
    recent_answers_.ended(sequence.generated(), limit, sequence.at_limit(), now - sequence.started_at());
  }
  counters_.leave(sequence.request().tenant);
  groups_.leave(sequence.request());
  reuse_.forget(sequence.id());
  speculation_.forget(sequence.id());
  sequence.finish();
  if (config_.tap != nullptr) config_.tap->finished(sequence.id(), reason);
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

std::array<std::int32_t, kServiceClasses> Scheduler::streams() const {
  std::array<std::int32_t, kServiceClasses> out{};
  for (const auto& sequence : running_) {
    if (sequence->decoding()) ++out[static_cast<std::size_t>(sequence->request().service_class)];
  }
  return out;
}

Occupancy Scheduler::occupancy() const {
  Occupancy out{.running = static_cast<std::int32_t>(running_.size()), .streams = streams()};
  for (std::size_t c = 0; c < kServiceClasses; ++c) out.waiting[c] = waiting_.of_class(static_cast<ServiceClass>(c));
  out.cells = ledger_.cells_used();
  return out;
}

bool Scheduler::consistent() const {
  if (!ledger_.conserved()) return false;
  if (ledger_.slots_used() != static_cast<std::int32_t>(running_.size())) return false;
  if (ledger_.slots_cached() != static_cast<std::int32_t>(reuse_.slots().size())) return false;
  TokenCount used = 0;
  SlotId previous{-1};
  for (const auto& sequence : running_) {
    if (sequence->slot() <= previous || !(sequence->prefilling() || sequence->decoding())) return false;
    previous = sequence->slot();
    used += sequence->computed();
  }
  TokenCount cached = 0;
  for (const CachedSlots::Kept& kept : reuse_.slots().all()) {
    if (!ledger_.is_cached(kept.slot)) return false;
    cached += kept.length();
  }
  return used == ledger_.cells_used() && cached == ledger_.cells_cached();
}

}  // namespace chasqui
