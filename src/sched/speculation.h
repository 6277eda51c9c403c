// Speculative decoding: the draft tokens of decoding sequences, and how many of them a decode step checks. A row that
// checks a draft token is computed together with the others, so it costs less than a step of its own; it is worth it
// when the draft token is likely enough to be accepted. Both are measured, so nothing is checked where it does not pay:
// on a busy server, or in text that does not repeat itself.
//
//   - drafts.h predicts: draft tokens, and how often they are accepted. draft_plan.h: what a draft model or heads do
//     for it, and what that takes (draft_cost.h).
//   - draft_width.h chooses how many rows each sequence gets.
//   - width_trials.h tries what may be better than is known.
// Owned by the Scheduler; pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.h"
#include "core/sequence.h"
#include "sched/draft_plan.h"
#include "sched/drafts.h"
#include "sched/step_time.h"
#include "sched/width_trials.h"

namespace chasqui {

class Speculation {
 public:
  // What a step may take.
  struct Room {
    TokenCount rows = 0;            // of the batch, each with an output
    TokenCount cells_per_slot = 0;  // of each sequence
    TokenCount cells = 0;           // beyond what is reserved, of all together
    bool even = false;              // all sequences get equally many rows, or more than one pass is needed
    Duration time{};                // unless the step takes longer without draft tokens
    TokenCount width = 1;           // that each has at least, for rows of what a grammar has forced
  };

  struct Stats {
    std::uint64_t steps = 0;                                 // that checked draft tokens, counted for each sequence
    std::uint64_t checked = 0;                               // draft tokens that had rows
    std::uint64_t accepted = 0;                              // … and were accepted
    std::array<std::uint64_t, Drafts::kMost> accepted_at{};  // by place: the first, the second …
    std::uint64_t draft_rows = 0;                            // that the draft model has read of prompts
  };

  explicit Speculation(const SpeculationConfig& config) : config_(config), drafts_(config), draft_plan_(config) {}

  bool on() const { return config_.draft_tokens_max > 0; }
  TokenCount outputs_max() const { return config_.outputs_max; }

  // Makes up its mind for a decode step of `decoding`, ascending slots: how many rows each of them gets, Room::width
  // without any draft tokens.
  TokenCount choose(std::span<const Sequence* const> decoding, const StepTime& times, const Room& room);
  // What is to be checked of the sequence after choose(), the next token first; with a draft model the tokens are not
  // known yet. Valid until the next choose().
  std::span<const Token> draft_tokens(const Sequence& sequence) const { return drafts_.checked(sequence.id()); }
  // What the draft model does in the step that choose() was asked about.
  void plan_drafting(Drafting& drafting);

  // The model's heads are to learn of the next batch.
  bool learns() const { return draft_plan_.learns(); }

  // The draft model has done its part of such a step, or not.
  void drafted(const BatchResult& result) { stats_.draft_rows += draft_plan_.drafted(result); }
  // The step that choose() was asked about took so long, without the draft model's part.
  void computed(const BatchResult& result, Duration took);
  // The sequence has said `said` tokens in a step that checked `checked` draft tokens. REQUIRES: they are its newest
  // tokens
  void commit(const Sequence& sequence, TokenCount checked, TokenCount said);
  // It lost its slot.
  void preempted(RequestId id) { draft_plan_.preempted(id); }
  // Tokens of it are gone, and others have taken their positions.
  void shifted(RequestId id);
  void forget(RequestId id);

  const Stats& stats() const { return stats_; }

 private:
  // What was decided for a step.
  struct Step {
    TokenCount width = 1;      // rows of each sequence
    TokenCount before = 1;     // … in the step before
    Duration time{};           // Room::time
    bool pays = false;         // to draft, if the draft model were ready
    bool checks = false;       // any draft tokens
    bool trial = false;        // it is not expected to be the best
    bool after_trial = false;  // the step before was one: this one turns back
    double expected = 0;       // seconds that it takes, if it does not turn
    double worth = 0;          // seconds that its tokens would take as is expected to be the best
    // It has other rows than the one before only because of draft tokens: libllama builds a graph for it.
    bool turns() const { return width != before; }
  };

  static TokenCount rows_before(std::span<const Sequence* const> decoding, TokenCount width);
  void weigh(std::span<const Sequence* const> decoding, const StepTime& times, const Room& room);
  TokenCount pick();
  bool ready(const Drafts::Turn& turn) const { return !config_.draft_model || draft_plan_.ready(*turn.sequence); }

  const SpeculationConfig config_;
  Drafts drafts_;
  DraftPlan draft_plan_;
  std::vector<WidthOption> options_;  // of the step that is being planned
  WidthLimits limits_;                // … but for what a turn takes, which is measured
  WidthTrials trials_;
  Step step_;
  Stats stats_;
};

}  // namespace chasqui
