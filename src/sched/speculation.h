// Speculative decoding: the draft tokens of decoding sequences, and how many of them a decode step checks. A row that
// checks a draft token is computed together with the others, so it costs less than a step of its own; it is worth it
// when the draft token is likely enough to be accepted. Both are measured: what steps take (StepTime, DraftCost) and
// how often draft tokens were accepted (Acceptance). So nothing is checked where it does not pay: on a busy server, or
// in text that does not repeat itself.
//
// Draft tokens are what followed in the sequence itself the last time (NgramIndex); then those that were not checked
// count as well, since what was said tells whether they would have been accepted. Or a draft model makes them: its part
// of a step is planned here, and what its slots hold is known here. Or heads of the model make them, which cost time
// for every batch that they learn of: where draft tokens have not paid for long they learn of none, and begin anew when
// it does.
//
// A source whose draft tokens were never accepted is not asked any more, and nothing more is learned of it. So what is
// expected of new requests returns to the first expectation while no draft tokens are checked.
// Owned by the Scheduler; pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "core/batch.h"
#include "core/sequence.h"
#include "sched/acceptance.h"
#include "sched/draft_cost.h"
#include "sched/ngram_index.h"
#include "sched/step_time.h"
#include "sched/trial_credit.h"

namespace chasqui {

struct SpeculationConfig {
  TokenCount draft_tokens_max = 0;        // of one sequence in one step; 0: none are made
  TokenCount draft_tokens_min = 0;        // are checked whether they pay or not, where there are so many
  TokenCount outputs_max = 0;             // rows of a batch that can have an output
  bool draft_model = false;               // makes the draft tokens, instead of what the sequence said before
  bool heads = false;                     // with it: it has nothing to read, and always makes draft_tokens_max
  TokenCount ngram = NgramIndex::kNgram;  // tokens that have to be the same as before, where that is the source
  bool always = false;                    // drafts any token where nothing was said before: for synthetic acceptance
};

class Speculation {
 public:
  static constexpr TokenCount kDraftTokensMost = kCountLimit<"draft_tokens">;

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
    std::uint64_t steps = 0;                                    // that checked draft tokens, counted for each sequence
    std::uint64_t checked = 0;                                  // draft tokens that had rows
    std::uint64_t accepted = 0;                                 // … and were accepted
    std::array<std::uint64_t, kDraftTokensMost> accepted_at{};  // by place: the first, the second …
    std::uint64_t draft_rows = 0;                               // that the draft model has read of prompts
  };

  explicit Speculation(const SpeculationConfig& config);

  bool on() const { return config_.draft_tokens_max > 0; }
  TokenCount outputs_max() const { return config_.outputs_max; }

  // Makes up its mind for a decode step of `decoding`, ascending slots: how many rows each of them gets, Room::width
  // without any draft tokens. A sequence with several rows to compute before its next token gets none.
  TokenCount choose(std::span<const Sequence* const> decoding, const StepTime& times, const Room& room);
  // What is to be checked of the sequence after choose(), the next token first; with a draft model the tokens are not
  // known yet. Valid until the next choose().
  std::span<const Token> draft_tokens(const Sequence& sequence) const;
  // What the draft model does in the step that choose() was asked about.
  void plan_drafting(Drafting& drafting);

  // The model's heads are to learn of the next batch.
  bool learns() const { return learning_steps_ > 0; }

  // That step has other rows than the one before only because of the draft tokens: libllama builds a graph for it,
  // which the next ones have no need of.
  bool turns() const { return turns_; }

  // The draft model has done its part of such a step, or not.
  void drafted(const BatchResult& result);
  // The step that choose() was asked about took so long, without the draft model's part.
  void computed(const BatchResult& result, Duration took);
  // The sequence has said `said` tokens in a step that checked `checked` draft tokens. REQUIRES: they are its newest
  // tokens
  void commit(const Sequence& sequence, TokenCount checked, TokenCount said);
  // It lost its slot.
  void preempted(RequestId id);
  void forget(RequestId id) { sequence_drafts_.erase(id); }

  const Stats& stats() const { return stats_; }

 private:
  struct SequenceDraft {
    SequenceDraft(double before, TokenCount ngram) : index(ngram), acceptance(before) {}
    NgramIndex index;
    Acceptance acceptance;
    std::vector<Token> draft_tokens;
    TokenCount checked = 0;  // of them, in the step that is being planned
    TokenCount read = 0;     // tokens of the sequence that the draft model's slot holds, or up to which heads know it
    TokenCount from = 0;     // … beginning here
  };
  // A sequence that may get draft tokens in the step that is being planned.
  struct Turn {
    const Sequence* sequence = nullptr;
    SequenceDraft* draft = nullptr;
    bool ready() const;  // the draft model has to read no more than its newest tokens, or heads know enough of it
  };

  SequenceDraft& draft_of(const Sequence& sequence);
  bool anyone_ready() const;
  TokenCount most(const Sequence& sequence, const Room& room) const;
  void collect(std::span<const Sequence* const> decoding, const Room& room);
  TokenCount rows_of(TokenCount width, TokenCount sequences, bool even) const;
  double tokens(TokenCount width, std::size_t sequences) const;
  TokenCount made(TokenCount wanted) const;
  double seconds(TokenCount rows, TokenCount width, TokenCount deepest, const StepTime& times, double alone) const;
  TokenCount pick(TokenCount sequences, TokenCount widest, TokenCount deepest, const StepTime& times, const Room& room);
  void read_more(Drafting& drafting);

  const SpeculationConfig config_;
  std::unordered_map<RequestId, SequenceDraft> sequence_drafts_;  // of the sequences that decode
  Acceptance all_;                                                // what is expected of new sequences
  int unasked_ = 0;                // sequences that began since a draft token was checked
  int learning_steps_;             // decode steps that heads learn of if nothing pays
  bool learned_ = false;           // of the newest
  bool learns_for_trial_ = false;  // which cannot be made before they know something
  DraftCost draft_cost_;
  std::vector<Turn> now_;  // ascending slots
  bool pays_ = false;      // to draft, in the step that is being planned, if the draft model were ready
  bool checks_ = false;    // any draft tokens
  bool turns_ = false;
  TokenCount width_before_ = 1;
  TokenCount previous_ = 1;   // … in the step before the one that is being planned
  double expected_ = 0;       // seconds that the step takes, if it does not turn
  double turn_seconds_ = 0;   // … and more, if it does
  bool trial_ = false;        // it is not expected to be the best
  bool after_trial_ = false;  // the step before was one: this one turns back
  double worth_ = 0;          // seconds that its tokens would take as is expected to be the best
  TokenCount trial_width_ = 1;
  int trial_steps_ = 0;  // that are left of it
  TrialCredit credit_;
  Duration time_{};                                         // Room::time of that step
  std::vector<std::pair<RequestId, TokenCount>> drafting_;  // who the draft model works for, and how far it reads them
  std::size_t drafts_ = 0;                                  // for how many of them it drafts
  TokenCount draft_passes_ = 0;                             // … and how often
  Stats stats_;
};

}  // namespace chasqui
