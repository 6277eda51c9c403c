// The part of a draft model, or of heads of the model, in a step: for which sequences they can draft, what they have to
// do for it, and what that takes. A draft model first has to compute what the model has computed: some rows of prompts
// in each step. Heads have nothing to compute, but learning of a batch takes time: where draft tokens have not paid for
// long they learn of none, and begin anew when it does. Owned by Speculation; pure.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "core/batch.h"
#include "sched/draft_cost.h"
#include "sched/drafts.h"

namespace chasqui {

class DraftPlan {
 public:
  explicit DraftPlan(const SpeculationConfig& config);

  // It decodes: it may get draft tokens.
  void meet(const Sequence& sequence);
  // A draft model has to compute no more than its newest tokens, or heads know enough of it. REQUIRES: it was met
  bool ready(const Sequence& sequence) const;
  // What it takes to have `wanted` draft tokens of each of so many sequences, where a step without them takes `step`.
  double seconds(TokenCount wanted, std::size_t sequences, double step) const;

  // What it does in a step for those of which some are checked, and for others meanwhile: as much as may be read in
  // half of `time`.
  void plan(std::span<const Drafts::Turn> turns, Duration time, Drafting& drafting);
  // That was done, or not. How many rows were read of prompts.
  std::size_t drafted(const BatchResult& result);
  // `accepted` of `checked` draft tokens, and the token behind them, are now the sequence's newest tokens.
  void commit(const Sequence& sequence, TokenCount checked, TokenCount accepted);
  // It lost its slot.
  void preempted(RequestId id);
  // Tokens of it are gone, so that what was known of it is nothing that it holds.
  void shifted(RequestId id) { preempted(id); }
  void forget(RequestId id) { known_.erase(id); }

  // Heads are to learn of the next batch.
  bool learns() const { return learning_steps_ > 0; }
  // Draft tokens pay, or heads have to know something before they can be tried.
  void learn_on();
  void learn_enough();
  // A decode step was computed, and heads have learned of it where they were to. REQUIRES: before its commit()
  void computed();

 private:
  struct Known {
    TokenCount read = 0;  // tokens of the sequence that the draft model's slot holds, or up to which heads know it
    TokenCount from = 0;  // … beginning here
  };
  struct Work {
    RequestId id;
    TokenCount end = 0;  // what is known of it then
    bool drafts = false;
  };

  TokenCount made(TokenCount wanted) const;
  void read_more(std::span<const Drafts::Turn> turns, Duration time, Drafting& drafting);

  const SpeculationConfig config_;
  std::unordered_map<RequestId, Known> known_;  // of the sequences that decode
  DraftCost cost_;
  std::vector<Work> work_;  // of the step that is being planned
  TokenCount passes_ = 0;   // … of which each makes a draft token of each sequence
  int learning_steps_;      // decode steps that heads learn of if nothing pays
  bool learned_ = false;    // of the newest
};

}  // namespace chasqui
