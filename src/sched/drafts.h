// What predicts: the draft tokens of sequences that decode, and how many of them are expected to be accepted.
//
// Draft tokens are what followed in the sequence itself the last time (NgramIndex); then those that were not checked
// count as well, since what was said tells whether they would have been accepted. Or there are places for those that a
// draft model makes. An acceptance rate is known of each sequence, and one of all, with which new ones begin; that
// returns to the first expectation while no draft token is checked.
// Owned by Speculation; pure.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "core/sequence.h"
#include "sched/acceptance.h"
#include "sched/ngram_index.h"

namespace chasqui {

class SchedulerTap;

struct SpeculationConfig {
  TokenCount draft_tokens_max = 0;        // of one sequence in one step; 0: none are made
  TokenCount draft_tokens_min = 0;        // are checked whether they pay or not, where there are so many
  bool alone = false;                     // only where one sequence decodes
  TokenCount outputs_max = 0;             // rows of a batch that can have an output
  bool draft_model = false;               // makes the draft tokens, instead of what the sequence said before
  bool heads = false;                     // with it: it has no prompt to compute, and always makes draft_tokens_max
  TokenCount ngram = NgramIndex::kNgram;  // tokens that have to be the same as before, where that is the source
  bool always = false;                    // drafts any token where nothing was said before: for synthetic acceptance
  SchedulerTap* tap = nullptr;            // see SchedulerConfig
};

class Drafts {
 public:
  static constexpr TokenCount kMost = kCountLimit<"draft_tokens">;  // of one sequence in one step

  struct Draft {
    NgramIndex index;
    Acceptance acceptance;
    std::vector<Token> tokens;  // with a draft model not known yet
    TokenCount checked = 0;     // of them, in the step that is being planned
    TokenCount most(TokenCount wanted) const { return std::min(wanted, static_cast<TokenCount>(tokens.size())); }
  };
  // A sequence that may get draft tokens in the step that is being planned.
  struct Turn {
    const Sequence* sequence = nullptr;
    Draft* draft = nullptr;
  };

  explicit Drafts(const SpeculationConfig& config);

  // For a step of `decoding`, with so many cells for each. A sequence with several rows to compute before its next
  // token gets no draft tokens.
  void collect(std::span<const Sequence* const> decoding, TokenCount cells);
  void clear() { turns_.clear(); }
  // As of the last collect(), in its order.
  std::span<const Turn> turns() const { return turns_; }
  // At most so many of each are checked: how many that is, of all together.
  TokenCount count(TokenCount each) const;
  // … and how many tokens a step of so many sequences brings then.
  double tokens(TokenCount sequences, TokenCount each) const;
  // What is to be checked of the sequence, by Draft::checked.
  std::span<const Token> checked(RequestId id) const;

  // The sequence has said `said` tokens in a step that checked `checked` draft tokens. REQUIRES: they are its newest
  // tokens
  void commit(const Sequence& sequence, TokenCount checked, TokenCount said);
  // Its tokens are not where they were: draft tokens are found anew, and accepted as often as before.
  void shifted(RequestId id);
  void forget(RequestId id) { sequences_.erase(id); }

 private:
  Draft& of(const Sequence& sequence);
  TokenCount most(const Sequence& sequence, TokenCount cells) const;

  const SpeculationConfig config_;
  std::unordered_map<RequestId, Draft> sequences_;  // those that decode
  Acceptance all_;                                  // what is expected of new ones
  int unasked_ = 0;                                 // sequences that began since a draft token was checked
  std::vector<Turn> turns_;
};

}  // namespace chasqui
