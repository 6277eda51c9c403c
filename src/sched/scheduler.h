// Decides what the model computes next, and is the only writer of sequences (one-writer). Owned by one Worker and
// used on its thread; no clock, no threads, no libllama: time comes in as an argument, so the same object runs in the
// simulator. next_batch() plans and reserves, commit() moves state, take_events() hands out what happened.
//
// Steps alternate while both kinds of work are there: a decode batch with one row for every running stream, then a
// prefill batch as large as the running streams can stand. The tokens of the first leave before the second starts.
#pragma once

#include <memory>
#include <vector>

#include "cache/kv_ledger.h"
#include "core/batch.h"
#include "core/event.h"
#include "core/load.h"
#include "core/sequence.h"
#include "sched/prefill_budget.h"
#include "sched/wait_queue.h"

namespace chasqui {

struct SchedulerConfig {
  KvLedger::Layout kv;
  TokenCount rows_max = 0;                   // rows of one batch; at least one for each slot
  Duration step_target = milliseconds(100);  // what a prefill step may add to the wait of a running stream
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);

  // Takes a valid request in; it waits for a slot.
  void add(RequestPtr request);
  // Ends it with FinishReason::cancelled; unknown and finished requests are ignored, since a cancel may cross the end.
  void cancel(RequestId id, TimePoint now);
  void cancel_all(TimePoint now);

  // Nothing waits and nothing runs: next_batch() would be empty.
  bool idle() const { return waiting_.empty() && running_.empty(); }

  // Fills `batch` with the next step; empty when there is nothing to compute.
  void next_batch(TimePoint now, Batch& batch);
  // REQUIRES: `batch` is what the last next_batch() filled, `result` what came of it.
  void commit(const Batch& batch, const BatchResult& result);
  // Moves the events since the last call to the end of `events`, in the order in which they happened.
  void take_events(std::vector<Event>& events);

  std::size_t waiting() const { return waiting_.size(); }
  std::size_t running() const { return running_.size(); }
  const KvLedger& ledger() const { return ledger_; }
  // What admission has to know.
  Load load() const;
  // All invariants that can be checked from here; for tests, the simulator and idle moments.
  bool consistent() const;

 private:
  using Running = std::vector<std::unique_ptr<Sequence>>;

  void expire(TimePoint now);
  void start_waiting(TimePoint now);
  void plan_decode(Batch& batch) const;
  void plan_prefill(Batch& batch) const;
  void add_prefill_part(const Sequence& sequence, TokenCount rows, Batch& batch) const;
  void commit_parts(const Batch& batch, const BatchResult& result);
  void commit_sample(Sequence& sequence, const Sample& sample, TimePoint now);
  void finish(Sequence& sequence, FinishReason reason, TimePoint now, const Error& error = {});
  void retire_finished();
  Sequence* find_running(RequestId id);

  const TokenCount rows_max_;
  KvLedger ledger_;
  PrefillBudget prefill_budget_;
  WaitQueue waiting_;
  Running running_;              // ascending slots
  std::vector<SlotId> to_trim_;  // released slots whose positions the model still holds
  std::vector<Event> events_;
  bool prefilled_last_ = false;
};

}  // namespace chasqui
