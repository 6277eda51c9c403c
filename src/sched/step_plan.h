// Chooses the rows of one step: the decoding streams, or as much prompt as they can stand meanwhile. Knows how long
// steps take (StepTime) and when each stream's next token is due. Owned by the Scheduler, which has reserved a slot and
// cells for everything that can be planned here; pure.
//
//   - Streams of the most urgent class are in every decode step. Others join while the step stays within that class's
//     target, the one that is due first before the others, and some in any case when their own target has passed.
//   - A prefill step is as long as the stream that is due first can wait, less the decode step that it is waiting for.
//     After each decode step prefill gets at least a few rows (progress), unless an interactive stream is late and the
//     prompt is of a lesser class (latency guard).
//   - The most urgent prompt is read first, but twice a second there is a turn for the oldest.
//   - With a stream of cells for each slot libllama computes rows of adjacent slots in one pass, so a sequence that is
//     still prefilling between decoding ones gives one row of its prompt to the decode step.
//   - For the same reason prompts that are read together are in adjacent slots and get equally many rows; what is
//     shorter is filled up with rows that its slot forgets again.
//   - Where rows by fours cost less than fewer of them, free slots after the last one get a row that nobody wants.
//   - Where guesses of what streams say next are worth checking (Speculation), each stream of a decode step gets rows
//     for them, equally many for the same reason.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cache/kv_ledger.h"
#include "core/batch.h"
#include "core/sequence.h"
#include "sched/speculation.h"
#include "sched/step_time.h"
#include "sched/targets.h"
#include "sched/urgency.h"

namespace chasqui {

using RunningSequences = std::vector<std::unique_ptr<Sequence>>;  // ascending slots

class StepPlan {
 public:
  StepPlan(const SchedulerTargets& targets, TokenCount rows_max, const KvLedger::Layout& kv, bool dense_slots)
      : targets_(targets), rows_max_(rows_max), kv_(kv), dense_slots_(dense_slots) {}

  // Fills kind, rows, parts and predicted time of `batch`; nothing when nobody runs. Only sequences with the adapters
  // of `batch` get rows; the streams of others only limit how long the step may be. Rows for guesses need a cell each
  // beyond those that are reserved: `cells` are there.
  void plan(const RunningSequences& running, const Urgency& urgency, const StepTime& times, Speculation& speculation,
            TokenCount cells, TimePoint now, Batch& batch);
  // What `batch`, the last one planned, cost: for StepTime::observe.
  StepSize size() const { return size_; }
  // It was computed in one pass, so its time says what such a step takes.
  bool one_run() const { return one_run_; }

 private:
  using Chunk = std::pair<const Sequence*, TokenCount>;
  // Prompts that one pass reads: adjacent slots, `rows` of each.
  struct Company {
    TokenCount rows = 0;
    TokenCount shortest = 0;  // rows that the shortest of them has for it
    TokenCount position = 0;  // where the one that is furthest begins
    TokenCount all(std::size_t parts) const { return rows * static_cast<TokenCount>(parts); }
  };

  void survey(const RunningSequences& running, const AdapterSet* adapters);
  void give_turn(TimePoint now);
  void choose_decoding(const StepTime& times, TimePoint now);
  void choose_width(const StepTime& times, Speculation& speculation, TokenCount cells);
  bool overdue(const Sequence& sequence, TimePoint now) const;
  Duration next_token_target(const Sequence& sequence) const;
  Duration prefill_time(TimePoint now) const;
  bool prefill_has_turn(const StepTime& times, TimePoint now) const;
  bool guarded(const Sequence& first, TimePoint now) const;
  void plan_decode(const RunningSequences& running, const Speculation& speculation, Batch& batch);
  bool fills_hole(const Sequence& sequence, std::ptrdiff_t to_come, const Batch& batch) const;
  void pad(const RunningSequences& running, const StepTime& times, Batch& batch);
  void plan_prefill(const StepTime& times, TimePoint now, Batch& batch);
  void join_in_any_order(const StepTime& times, Duration time);
  Company join_neighbours(const StepTime& times, Duration time);
  bool joins(const Sequence& other, const StepTime& times, Duration time, Company& company) const;
  TokenCount chunk_of(const Sequence& sequence, const StepTime& times, Duration time) const;
  void add_part(const Sequence& sequence, TokenCount rows, std::span<const Token> guesses, TokenCount padding,
                Batch& batch);

  const SchedulerTargets targets_;
  const TokenCount rows_max_;
  const KvLedger::Layout kv_;
  const bool dense_slots_;

  bool prefilled_last_ = false;
  std::uint64_t pads_considered_ = 0;
  TimePoint last_turn_{};  // when somebody else's prompt was last read before the most urgent
  StepSize size_;
  bool one_run_ = true;

  // Of the step that is being planned.
  std::vector<const Sequence*> decoding_;    // all, ascending slots
  std::vector<const Sequence*> others_;      // decode, too, with other adapters
  std::vector<const Sequence*> decode_now_;  // those who get a row, ascending slots
  std::vector<const Sequence*> prefilling_;  // most urgent first
  std::vector<std::size_t> by_slot_;         // places in prefilling_, ascending slots
  std::vector<Chunk> chunks_;
  TokenCount width_ = 1;  // rows of each sequence in a decode step
  Duration decode_time_{};
};

}  // namespace chasqui
