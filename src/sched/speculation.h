// Guesses what decoding sequences say next, and how many guesses a decode step checks. A row that checks a guess is
// computed together with the others, so it costs less than a step of its own; it is worth it when the guess is likely
// enough to be right. Both are measured: what steps take (StepTime) and how often guesses were right (Acceptance), also
// of guesses that were not checked, since what was said tells whether they would have been right. So nothing is checked
// where it does not pay: on a busy server, or in text that does not repeat itself.
// Owned by the Scheduler; pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "core/sequence.h"
#include "sched/acceptance.h"
#include "sched/ngram_index.h"
#include "sched/step_time.h"

namespace chasqui {

struct SpeculationConfig {
  TokenCount guesses_max = 0;  // of one sequence in one step; 0: none are made
  TokenCount outputs_max = 0;  // rows of a batch that can have an output
};

class Speculation {
 public:
  static constexpr TokenCount kGuessesMost = kCountLimit<"guesses">;

  // What a step may take.
  struct Room {
    TokenCount rows = 0;            // of the batch, each with an output
    TokenCount cells_per_slot = 0;  // of each sequence
    TokenCount cells = 0;           // beyond what is reserved, of all together
    bool even = false;              // all sequences get equally many rows, or more than one pass is needed
    Duration time{};                // unless the step takes longer without guesses
  };

  struct Stats {
    std::uint64_t steps = 0;                             // in which guesses of somebody were checked, for each of them
    std::uint64_t checked = 0;                           // guesses that had rows
    std::uint64_t right = 0;                             // … and were
    std::array<std::uint64_t, kGuessesMost> right_at{};  // by place: the first, the second …
  };

  explicit Speculation(const SpeculationConfig& config) : config_(config) {}

  bool on() const { return config_.guesses_max > 0; }
  TokenCount outputs_max() const { return config_.outputs_max; }

  // Makes up its mind for a decode step of `decoding`: how many rows each of them gets, 1 without any guesses.
  TokenCount choose(std::span<const Sequence* const> decoding, const StepTime& times, const Room& room);
  // What is to be checked of the sequence after choose(), the next token first. Valid until the next choose().
  std::span<const Token> guesses(const Sequence& sequence) const;

  // The sequence has said `said` tokens in a step that checked `checked` guesses. REQUIRES: they are its newest tokens
  void commit(const Sequence& sequence, TokenCount checked, TokenCount said);
  void forget(RequestId id) { guessers_.erase(id); }

  const Stats& stats() const { return stats_; }

 private:
  struct Guesser {
    explicit Guesser(double before) : acceptance(before) {}
    NgramIndex index;
    Acceptance acceptance;
    std::vector<Token> guesses;
    TokenCount checked = 0;  // of them, in the step that is being planned
  };

  TokenCount most(const Sequence& sequence, const Room& room) const;
  double tokens(TokenCount width, std::size_t sequences) const;
  double seconds(TokenCount rows, TokenCount width, TokenCount deepest, const StepTime& times, double alone) const;

  const SpeculationConfig config_;
  std::unordered_map<RequestId, Guesser> guessers_;  // of the sequences that decode
  Acceptance all_{0.5};                              // what is expected of those who begin
  std::vector<Guesser*> now_;                        // those with a guess in the step that is being planned
  std::uint64_t considered_ = 0;
  Stats stats_;
};

}  // namespace chasqui
