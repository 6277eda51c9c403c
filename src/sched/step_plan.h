// Chooses the rows of one step: the decoding streams, or as much prompt as they can stand meanwhile (plan_prefill()
// sizes the prefill chunk). Knows how long steps take (StepTime) and when each stream's next token is due. Owned by the
// Scheduler, which has reserved a slot and cells for everything that can be planned here; pure.
//
//   - Every decoding stream with the adapters of the batch is in every decode step; where a batch cannot hold all of
//     them, those that have waited longest.
//   - Beside streams, a prefill step is as long as the stream that is due first can wait, less the decode step that it
//     is waiting for. What a stream can wait grows with what a pass over the weights costs, so that a chunk never gets
//     so small that its rows cost much more than they have to; how far it exceeds the target is Batch::stretch.
//   - With no stream decoding, a prompt is prefilled in whole micro-batches. An urgent arrival may cut such a step
//     once; from then until the server is idle, steps are short instead. One that is alone is prefilled in whole
//     micro-batches whatever was measured, so that it is answered with the same bytes each time (where steps can be
//     cut); and so are deterministic requests, each in batches of its own.
//   - After each decode step the most urgent prompt gets rows; where the policy takes turns, one prefill step in three
//     belongs to the one that has waited longest for rows.
//   - With a stream of cells for each slot libllama computes rows of adjacent slots in one pass, so a sequence that is
//     still prefilling between decoding ones gives as many rows of its prompt to the decode step as each of them has.
//     For the same reason prompts that are prefilled together are in adjacent slots and get equally many rows; what is
//     shorter is filled up with rows that its slot forgets again.
//   - A prompt whose tokens' likelihoods are asked for is prefilled alone, in chunks of as many rows as may have an
//     output.
//   - Places of a picture or a sound are prefilled alone, too, since rows are of tokens or not: all of them in one step
//     where they see each other, however long it takes.
//   - No chunk goes beyond the next checkpoint of its prompt (Request::checkpoints): its state is kept there.
//   - Where rows by fours cost less than fewer of them, free slots after the last one get a padding row.
//   - Where draft tokens of what streams say next are worth checking (Speculation), each stream of a decode step gets
//     rows for them, equally many, so that adjacent slots go in one pass.
//   - What a grammar has forced in a stream is computed in as many rows of a decode step as bring most tokens a second;
//     one at least, so that the stream is never later than if they had been sampled.
#pragma once

#include <cstddef>
#include <cstdint>
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
  struct Config {  // as in SchedulerConfig
    SchedulerTargets targets;
    TokenCount rows_max = 0;
    KvLedger::Layout kv;
    bool dense_slots = false;
    bool cuts_steps = true;
    bool cuts_joined = true;
  };

  explicit StepPlan(const Config& config)
      : targets_(config.targets),
        rows_max_(config.rows_max),
        kv_(config.kv),
        dense_slots_(config.dense_slots),
        cuts_steps_(config.cuts_steps),
        cuts_joined_(config.cuts_joined) {}

  // Fills kind, rows, parts and predicted time of `batch`; nothing when no sequence runs. Only sequences with the
  // adapters of `batch` get rows; the streams of others only limit how long the step may be. Rows for draft tokens need
  // a cell each beyond those that are reserved: `cells` are there.
  void plan(const RunningSequences& running, const Urgency& urgency, const StepTime& times, Speculation& speculation,
            TokenCount cells, TimePoint now, Batch& batch);
  // What the time between two tokens of a stream follows from, beside its class and target.
  struct Wait {
    Duration decode{};        // a decode step
    Duration pass{};          // a pass over the weights
    Duration cheap_chunk{};   // StepTime::cheap_chunk()
    std::size_t prompts = 0;  // that are being prefilled
  };
  // How long a stream of this class waits for its next token while prompts are being prefilled: until its target, or
  // longer where a decode step, or a pass, takes long; where it is not urgent, until a chunk of cheap rows is computed.
  static Duration token_time(ServiceClass of, Duration target, const Wait& wait);
  // What of that a chunk takes at least.
  static Duration least_chunk(Duration pass);

  // Nothing is to be written into these slots, although no sequence has them; until the next call.
  void spare(const std::vector<SlotId>& slots) { spared_ = slots; }
  // What `batch`, the last one planned, cost: for StepTime::observe.
  StepSize size() const { return size_; }
  // It has other rows of each sequence than the decode step before, so that libllama builds a graph for it.
  bool turns() const { return turns_; }
  // It was computed in one pass, so its time says what such a step takes.
  bool one_pass() const { return passes_ == 1; }
  // What became of the batch that was planned last. A step whose restore has failed was not cut.
  void ended(const Batch& batch, const BatchResult& result) {
    const bool aborted = result.status == DecodeStatus::aborted && result.not_restored.empty();
    cut_before_ |= aborted && batch.cut_by != Batch::kUncut;
  }
  // Nothing runs and nothing waits: that a step was cut before says nothing of what comes.
  void rests() { cut_before_ = false; }

 private:
  using Chunk = std::pair<const Sequence*, TokenCount>;
  // Prompts that one pass reads: adjacent slots, `rows` of each.
  struct PrefillGroup {
    TokenCount rows = 0;
    TokenCount shortest = 0;  // rows that the shortest of them has for it
    TokenCount position = 0;  // where the one that is furthest begins
    TokenCount all(std::size_t parts) const { return rows * static_cast<TokenCount>(parts); }
  };

  void survey(const RunningSequences& running, const AdapterSet* adapters);
  void give_turn();
  void choose_decoding(const StepTime& times);
  void choose_width(const StepTime& times, Speculation& speculation, TokenCount cells);
  Duration target_of(const Sequence& sequence) const;
  Duration prefill_time(const StepTime& times, TimePoint now) const;
  Duration least_chunk(const StepTime& times) const;
  bool prefill_has_turn(bool prefilled, const StepTime& times, TimePoint now) const;
  void plan_decode(const RunningSequences& running, const Speculation& speculation, Batch& batch);
  bool fills_hole(const Sequence& sequence, std::ptrdiff_t to_come, const Batch& batch) const;
  void pad(const RunningSequences& running, const StepTime& times, Batch& batch);
  void plan_prefill(const StepTime& times, TimePoint now, Batch& batch);
  Duration stretch(TimePoint now, Duration prefill) const;
  int cut_by(Duration step) const;
  void join_in_any_order(const StepTime& times, Duration time);
  PrefillGroup join_neighbours(const StepTime& times, Duration time);
  bool joins(const Sequence& other, const StepTime& times, Duration time, PrefillGroup& company) const;
  TokenCount chunk_of(const Sequence& sequence, const StepTime& times, Duration time) const;
  void add_part(const Sequence& sequence, TokenCount rows, std::span<const Token> draft_tokens, TokenCount padding,
                Batch& batch);

  const SchedulerTargets targets_;
  const TokenCount rows_max_;
  const KvLedger::Layout kv_;
  const bool dense_slots_;
  const bool cuts_steps_;
  const bool cuts_joined_;

  // Sets of adapters whose latest step read prompts: where sets take turns, each goes on with its own streams.
  std::vector<std::uint64_t> prefilled_last_;
  std::uint64_t pads_considered_ = 0;
  std::uint64_t prefills_ = 1;
  bool cut_before_ = false;  // an arrival has cut a step since the server was idle: more of them may come
  StepSize size_;
  std::int32_t passes_ = 1;

  // Of the step that is being planned.
  std::vector<const Sequence*> decoding_;    // all, ascending slots
  std::vector<const Sequence*> others_;      // decode, too, with other adapters
  std::vector<const Sequence*> decode_now_;  // those who get a row, ascending slots
  std::vector<const Sequence*> prefilling_;  // most urgent first
  std::vector<std::size_t> by_slot_;         // places in prefilling_, ascending slots
  std::vector<Chunk> chunks_;
  std::vector<SlotId> spared_;
  TokenCount outputs_max_ = 1;
  TokenCount width_ = 1;  // rows of each sequence in a decode step
  TokenCount width_before_ = 1;
  bool turns_ = false;
  bool fixed_ = false;  // the rows of the step do not follow what was measured
  Duration decode_time_{};
  Duration sampling_time_{};  // after it, of what grammars take
};

}  // namespace chasqui
