// The flags of `chasqui serve` that say how next tokens are guessed. Part of app/config.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/types.h"

namespace CLI {
class App;
}

namespace chasqui {

// automatic: what the file for --model-draft is good for, if there is one; eagle3, mtp: see model/heads.h
enum class GuessSource { automatic, none, ngram, draft, eagle3, mtp };

struct SpeculationOptions {
  GuessSource source = GuessSource::automatic;
  std::optional<TokenCount> most;   // guesses in one step; none: as `guesses_max()` has it
  TokenCount least = 0;             // … and at least so many, whether it pays or not
  std::string draft_model;          // its file; empty: there is none
  std::vector<double> pretended{};  // see EngineConfig::guess_chances

  // With its own row a sequence has eight, which kernels like. Heads make all of them whatever is wanted, and are
  // seldom right about the fourth.
  TokenCount guesses_max() const {
    if (source == GuessSource::none || (source == GuessSource::automatic && draft_model.empty())) return 0;
    return most.value_or(heads() ? 3 : 7);
  }
  bool drafts() const {
    return source == GuessSource::draft || (source == GuessSource::automatic && !draft_model.empty());
  }
  bool heads() const { return source == GuessSource::eagle3 || source == GuessSource::mtp; }
};

// `options` outlives the parsing.
void add_speculation_options(CLI::App& app, SpeculationOptions& options);

}  // namespace chasqui
