// Decides what the model computes next, and is the only writer of sequences (one-writer). Owned by one Worker and
// used on its thread; no clock, no threads, no libllama: time comes in as an argument, so the same object runs in the
// simulator. next_batch() plans and reserves, commit() moves state, take_events() hands out what happened.
//
//   who gets a slot, and loses it     scheduler_slots.cpp, by urgency.h and tenant_counters.h
//   what need not be computed again   reuse.h
//   when copies are made              scheduler_copies.cpp
//   which slots are adjacent          scheduler_holes.cpp
//   whose adapters are applied        adapter_turns.h, scheduler_adapters.cpp
//   whose context is shifted          scheduler_shift.cpp
//   which rows are in a step          step_plan.h, by step_time.h
//   what is drafted and checked       speculation.h
//   when those that wait will start   projection.h, scheduler_forecast.cpp
//   which cells there are             cache/kv_ledger.h
//   what of all this is recorded      scheduler_tap.h, scheduler_inputs.cpp
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "cache/kv_ledger.h"
#include "core/batch.h"
#include "core/encoding.h"
#include "core/event.h"
#include "core/load.h"
#include "core/sequence.h"
#include "sched/adapter_turns.h"
#include "sched/group_counters.h"
#include "sched/occupancy.h"
#include "sched/overtaking.h"
#include "sched/projection.h"
#include "sched/recent_answers.h"
#include "sched/restore_queue.h"
#include "sched/reuse.h"
#include "sched/scheduler_tap.h"
#include "sched/speculation.h"
#include "sched/step_plan.h"
#include "sched/step_time.h"
#include "sched/targets.h"
#include "sched/tenant_counters.h"
#include "sched/urgency.h"
#include "sched/wait_queue.h"

namespace chasqui {

struct SchedulerConfig {
  KvLedger::Layout kv;
  TokenCount rows_max = 0;   // rows of one batch
  bool dense_slots = false;  // rows of adjacent slots are computed in one pass: keep them adjacent
  bool cuts_steps = true;    // a running step can be aborted, with the slots as they were before
  bool cuts_joined = true;   // … also one that reads several prompts
  bool exchanges = false;    // two sequences may change places
  bool encodes = false;      // units of prompts are encoded apart from steps: see take_encoding_orders()
  ReuseConfig reuse;
  SpeculationConfig speculation;
  SchedulerTargets targets;
  const SlotPolicy* policy = &fair_policy();
  SchedulerTap* tap = nullptr;  // outlives the scheduler; null: nothing is recorded
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);

  // Takes a valid request in; it waits for a slot.
  void add(RequestPtr request);
  // Ends it with FinishReason::cancelled; unknown and finished requests are ignored, since a cancel may cross the end.
  // `reason` is another one where its answer has ended already.
  void cancel(RequestId id, TimePoint now, FinishReason reason = FinishReason::cancelled);
  void cancel_all(TimePoint now);
  // Ends everything with FinishReason::error.
  void fail_all(const Error& error, TimePoint now);
  // See Reuse::forget_tenant().
  std::size_t forget_tenant(const Tenant& tenant, std::uint64_t ticket = 0);
  // What cached slots hold is copied out by the next steps, as far as the prefix cache has room.
  void copy_slots_out(TimePoint now);
  // The model has forgotten what its slots held. REQUIRES: nothing runs, and nothing is to be copied out
  void slots_were_emptied();

  // See Reuse; REQUIRES: … as there.
  void want_copy_of_slot(std::int32_t slot, const Tenant& tenant);
  SlotCopy copy_of_slot(std::int32_t slot, const Tenant& tenant) const;
  bool adopt_slot(std::int32_t slot, const Tenant& tenant, SlotCopy copy, TimePoint now);

  // Nothing waits, nothing runs and nothing is to be kept: next_batch() would be empty.
  bool idle() const { return waiting_.empty() && running_.empty() && !reuse_.has_saves() && !reuse_.has_pieces(); }

  // Nothing runs, and all who wait wait for a file: so until a command comes. As of the last next_batch().
  bool waits_for_disk() const { return waits_for_disk_; }
  // All that runs waits for a picture or a sound to be encoded: so until encoded(), or another command.
  bool waits_for_units() const { return waits_for_units_; }
  // What sequences that run come to next, at the end of `orders`. REQUIRES: SchedulerConfig::encodes
  void take_encoding_orders(std::vector<EncodingOrder>& orders);
  // What came of one of these orders.
  void encoded(const EncodingOutcome& outcome, TimePoint now);
  // There are events that clients should have before the step, which may be long: the prefill of a prompt begins.
  bool tells_before_step() const { return tells_before_step_; }
  // See DiskTier. REQUIRES: there is a disk.
  void found_on_disk(FoundSnapshot file);
  void rest_disk();
  void flush_to_disk();
  void take_disk_orders(std::vector<DiskOrder>& orders);
  // What came of one of these orders.
  void disk_done(DiskOutcome outcome, TimePoint now);

  // Fills `batch` with the next step; empty when there is nothing to compute.
  void next_batch(TimePoint now, Batch& batch);
  // REQUIRES: `batch` is what the last next_batch() filled, `result` what came of it.
  void commit(const Batch& batch, const BatchResult& result);
  // Moves the events since the last call to the end of `events`, in the order in which they happened.
  void take_events(std::vector<Event>& events);

  std::size_t waiting() const { return waiting_.size(); }
  std::size_t running() const { return running_.size(); }
  // Running sequences that wait for their next token, by class.
  std::array<std::int32_t, kServiceClasses> streams() const;
  Occupancy occupancy() const;
  const RunningSequences& running_sequences() const { return running_; }
  const WaitQueue::Line& waiting_sequences() const { return waiting_.all(); }  // in no order
  // Sequences that lost their slot, so far.
  std::uint64_t preemptions() const { return preemptions_; }
  // Sequences that went to another slot, so far.
  std::uint64_t moves() const { return moves_; }
  const KvLedger& ledger() const { return ledger_; }
  const Reuse& reuse() const { return reuse_; }
  const Speculation& speculation() const { return speculation_; }
  const AdapterTurns& adapter_turns() const { return adapter_turns_; }
  const DiskTier* disk() const { return reuse_.disk(); }  // null: there is none
  // What admission has to know; the forecast in it is made anew when it is old.
  Load load();
  // All invariants that can be checked from here; for tests, the simulator and idle moments.
  bool consistent() const;

 private:
  // Before one step; each costs about a millisecond. An exchange counts as two.
  static constexpr std::size_t kMovesPerStep = 4;

  enum class Keep { nothing, what_is_worth_it };
  // A sequence that can start now, what it begins with, and why.
  struct Start {
    const Sequence* sequence = nullptr;
    Reuse::Prefix prefix{};
    CacheUse use{};
  };

  void plan_step(TimePoint now, Batch& batch);
  void commit_step(const Batch& batch, const BatchResult& result);
  void order_units();
  bool all_await_units() const;
  void end_all(FinishReason reason, const Error& error, TimePoint now);
  Urgency urgency(TimePoint now) const;
  std::int64_t tokens_to_prefill() const;
  void expire(TimePoint now);
  void end_late(Sequence& sequence, TimePoint now);
  void shift_full(TimePoint now, Batch& batch);
  void place_shifts(Batch& batch);
  void undo_shifts(const Batch& batch);
  void reserve_next_cells(TimePoint now, Batch& batch);
  void start_waiting(const Urgency& urgency, TimePoint now, Batch& batch);
  SlotId take_slot(const Sequence& next, const Reuse::Prefix& prefix, Batch& batch);
  SlotId free_slot_beside_running() const;
  bool free_cached_slot_beside(SlotId except, TimePoint now);
  bool has_room_for(const Reuse::Prefix& prefix) const;
  void bring_prefix(Sequence& sequence, const Reuse::Prefix& prefix, Batch& batch);
  void take_restores(Batch& batch);
  bool stop_restore(Sequence& sequence);
  void release_sources(const Batch& batch);
  void copy_ahead(TimePoint now);
  bool may_yield(TimePoint now) const;
  bool free_slot_for(const Sequence& next, const Urgency& urgency, TimePoint now, Batch& batch);
  TokenCount cells_needed(const Sequence& next, std::size_t others) const;
  const Sequence* most_urgent(const Urgency& urgency);
  const Sequence* most_urgent_behind(const Standing& first, const Urgency& urgency);
  std::optional<Start> next_to_start(const Urgency& urgency, TimePoint now, Batch& batch);
  void preempt(std::size_t place, TimePoint now, Batch& batch);
  void close_holes(Batch& batch);
  std::optional<std::int32_t> cheapest_window();
  bool fill_hole(SlotId slot, std::int32_t first, std::int32_t end, Batch& batch);
  bool affords_move(TokenCount tokens, Batch& batch);
  bool moves_in_time(TokenCount tokens, const Batch& batch) const;
  Duration time_to_move(TokenCount tokens) const;
  void bring_sets_together(Batch& batch);
  void move(std::size_t place, SlotId to, Batch& batch);
  void exchange(std::size_t place, std::size_t other, Batch& batch);
  bool make_room(SlotId slot, Batch& batch);
  void exchange_cached(std::size_t place, SlotId to, Batch& batch);
  void insert_running(std::unique_ptr<Sequence> sequence);
  void announce(const Urgency& urgency, TimePoint now);
  void tell_progress(const Sequence& sequence, TimePoint now);
  void tell_prompt(Sequence& sequence, const PromptChances& prompt);
  void commit_parts(const Batch& batch, const BatchResult& result);
  using Samples = std::vector<Sample>::const_iterator;
  int least_urgent_running() const;
  void reserve_draft_tokens(const Batch& batch);
  Samples commit_samples(Sequence& sequence, const BatchPart& part, Samples next, Samples end, TimePoint now);
  void commit_sample(Sequence& sequence, const Sample& sample, TimePoint now);
  void finish(Sequence& sequence, FinishReason reason, TimePoint now, const Error& error = {});
  void retire_finished(Keep keep);
  void release_given_up();
  void copy_pieces(Batch& batch);
  Duration time_for_copies(const Batch& batch) const;
  Duration time_for_copies(const Batch& batch, double beside_streams) const;
  Sequence* find_running(RequestId id);
  std::size_t place_of(RequestId id) const;  // running_.size() when it does not run
  void note_first_token(const Sequence& sequence, Event& event, TimePoint now);
  void note_decoding(const BatchResult& result, std::size_t streams);
  void project(const Urgency& urgency);
  // `swap`: seconds for a copy of one token out of a slot and back.
  Projection::Member projected(const Sequence& sequence, const Urgency& urgency, double swap) const;
  double reading_seconds(TokenCount rows, TokenCount position) const;
  Duration wait_of(const Request& request) const;

  const SchedulerConfig config_;
  KvLedger ledger_;
  Reuse reuse_;
  StepTime step_time_;
  Speculation speculation_;
  StepPlan plan_;
  AdapterTurns adapter_turns_;
  TenantCounters counters_;
  GroupCounters groups_;
  WaitQueue waiting_;
  Overtaking overtaking_;
  RecentAnswers recent_answers_;
  Projection projection_;
  RunningSequences running_;                    // ascending slots
  RestoreQueue restoring_;                      // of some of them
  std::vector<SlotId> cached_;                  // scratch: slots that no sequence has, and that hold something
  std::vector<TokenCount> inside_, outside_;    // scratch of cheapest_window()
  std::vector<RestoreQueue::Coming> restored_;  // scratch of take_restores()
  Duration hole_cost_{};                        // what holes between the slots of streams have cost so far
  LastSwap last_swap_;
  std::vector<SlotId> to_trim_;                 // released slots whose positions the model still holds
  std::vector<Event> events_;
  std::vector<const Sequence*> line_;  // scratch of announce() and bring_sets_together()
  TimePoint planned_{};                // the time of the last step
  TimePoint now_{};                    // … or of its end
  TimePoint projected_ = kNever;       // when projection_ was made
  Load forecast_;                      // what it said; `newer` counts on
  std::int64_t newer_tokens_ = 0;      // of their prompts
  double tokens_a_row_ = 1;            // that streams get in a decode step, a moving average
  double fresh_share_ = 1;             // of prompts, that is not cached
  TimePoint announced_{};
  std::vector<EncodingOrder> encoding_orders_;
  bool waits_for_disk_ = false;
  bool waits_for_units_ = false;
  bool tells_before_step_ = false;
  std::uint64_t preemptions_ = 0;
  std::uint64_t moves_ = 0;
};

}  // namespace chasqui
