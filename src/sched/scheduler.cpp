// Invariants kept here:
//   one-terminal  finish() is the only maker of finished events, and a finished sequence leaves running_ at once
//   one-writer    only this file calls the changing members of Sequence
//   conservation  every running sequence holds exactly one slot of ledger_, and nobody else does
//   progress      with free slots the head of the queue starts; each step advances every decoding sequence
#include "sched/scheduler.h"

#include <algorithm>
#include <tuple>

namespace chasqui {

Scheduler::Scheduler(const SchedulerConfig& config)
    : rows_max_(config.rows_max), ledger_(config.kv), prefill_budget_(config.step_target, config.rows_max) {
  CHECK(rows_max_ >= config.kv.slots, "a decode batch must hold one row for each slot");
}

void Scheduler::add(RequestPtr request) { waiting_.push(std::make_unique<Sequence>(std::move(request))); }

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
  start_waiting(now);

  const auto in_state = [this](Sequence::State state) {
    return std::any_of(running_.begin(), running_.end(), [state](const auto& s) { return s->state() == state; });
  };
  const bool decoding = in_state(Sequence::State::decoding);
  const bool prefilling = in_state(Sequence::State::prefilling);
  if (decoding && (prefilled_last_ || !prefilling)) {
    plan_decode(batch);
  } else if (prefilling) {
    plan_prefill(batch);
  } else {
    return;
  }
  prefilled_last_ = batch.kind == Batch::Kind::prefill;
  batch.trims.swap(to_trim_);
  to_trim_.clear();
}

void Scheduler::commit(const Batch& batch, const BatchResult& result) {
  if (result.status == DecodeStatus::ok) {
    if (batch.kind == Batch::Kind::prefill) {
      prefill_budget_.observe(static_cast<TokenCount>(batch.rows.size()), result.compute);
    }
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
    sequence.computed_rows(part.rows);
    ledger_.use(part.slot, part.rows);
    if (part.samples) {
      CHECK(sample != result.samples.end() && sample->request == sequence.id());
      commit_sample(sequence, *sample++, result.finished);
    } else if (sequence.prompt_left() == 0) {
      finish(sequence, FinishReason::length, result.finished);  // asked for no token at all
    }
  }
}

void Scheduler::take_events(std::vector<Event>& events) {
  events.insert(events.end(), std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
  events_.clear();
}

Load Scheduler::load() const {
  Load load;
  load.slots = ledger_.slots_total();
  load.running = static_cast<std::int32_t>(running_.size());
  return load;
}

bool Scheduler::consistent() const {
  if (!ledger_.conserved()) return false;
  if (ledger_.slots_used() != static_cast<std::int32_t>(running_.size())) return false;
  TokenCount used = 0;
  SlotId previous{-1};
  for (const auto& sequence : running_) {
    if (sequence->slot() <= previous || sequence->state() == Sequence::State::finished) return false;
    previous = sequence->slot();
    used += sequence->computed();
  }
  return used == ledger_.cells_used();
}

void Scheduler::expire(TimePoint now) {
  while (auto sequence = waiting_.remove_expired(now)) finish(*sequence, FinishReason::deadline, now);
  for (const auto& sequence : running_) {
    if (sequence->request().deadline <= now) finish(*sequence, FinishReason::deadline, now);
  }
  retire_finished();
}

void Scheduler::start_waiting(TimePoint now) {
  while (const Sequence* next = waiting_.front()) {
    const auto slot = ledger_.take(next->cells_max());
    if (!slot) return;
    std::unique_ptr<Sequence> sequence = waiting_.pop();
    sequence->start(*slot, now);
    const auto place = std::find_if(running_.begin(), running_.end(),
                                    [&](const auto& other) { return other->slot() > sequence->slot(); });
    running_.insert(place, std::move(sequence));
  }
}

void Scheduler::plan_decode(Batch& batch) const {
  batch.kind = Batch::Kind::decode;
  for (const auto& sequence : running_) {
    if (sequence->state() != Sequence::State::decoding) continue;
    const auto first = static_cast<std::int32_t>(batch.rows.size());
    batch.rows.push_back({sequence->last_token(), sequence->computed(), sequence->slot(), true});
    batch.parts.push_back({&sequence->request(), sequence->slot(), first, 1, true});
  }
}

void Scheduler::plan_prefill(Batch& batch) const {
  batch.kind = Batch::Kind::prefill;
  std::vector<const Sequence*> prefilling;
  bool decoding = false;
  for (const auto& sequence : running_) {
    if (sequence->state() == Sequence::State::prefilling) prefilling.push_back(sequence.get());
    if (sequence->state() == Sequence::State::decoding) decoding = true;
  }
  // Who came first gets its rows first, but libllama wants the rows in the order of the slots.
  std::sort(prefilling.begin(), prefilling.end(), [](const Sequence* a, const Sequence* b) {
    return std::tuple(a->request().service_class, a->id()) < std::tuple(b->request().service_class, b->id());
  });
  TokenCount budget = prefill_budget_.rows(decoding);
  std::vector<std::pair<const Sequence*, TokenCount>> chunks;
  for (const Sequence* sequence : prefilling) {
    if (budget == 0) break;
    const TokenCount rows = std::min(budget, sequence->prompt_left());
    chunks.emplace_back(sequence, rows);
    budget -= rows;
  }
  std::sort(chunks.begin(), chunks.end(),
            [](const auto& a, const auto& b) { return a.first->slot() < b.first->slot(); });
  for (const auto& [sequence, rows] : chunks) add_prefill_part(*sequence, rows, batch);
}

void Scheduler::add_prefill_part(const Sequence& sequence, TokenCount rows, Batch& batch) const {
  const bool last_chunk = rows == sequence.prompt_left();
  const bool samples = last_chunk && !sequence.at_limit();
  const auto first = static_cast<std::int32_t>(batch.rows.size());
  for (TokenCount i = 0; i < rows; ++i) {
    const TokenCount position = sequence.computed() + i;
    const Token token = sequence.request().prompt[static_cast<std::size_t>(position)];
    batch.rows.push_back({token, position, sequence.slot(), samples && i + 1 == rows});
  }
  batch.parts.push_back({&sequence.request(), sequence.slot(), first, rows, samples});
}

void Scheduler::commit_sample(Sequence& sequence, const Sample& sample, TimePoint now) {
  sequence.add_token(sample.token, now);
  Event event;
  event.request = sequence.id();
  event.text = sample.text;
  event.tokens = 1;
  events_.push_back(std::move(event));
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
  event.reason = reason;
  event.usage = sequence.usage(now);
  event.error = error;
  events_.push_back(std::move(event));
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
  const auto found =
      std::find_if(running_.begin(), running_.end(), [id](const auto& sequence) { return sequence->id() == id; });
  return found != running_.end() ? found->get() : nullptr;
}

}  // namespace chasqui
