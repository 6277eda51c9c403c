// The flags of `chasqui serve` that say how next tokens are guessed. Part of app/config.
#pragma once

#include <string>
#include <vector>

#include "core/types.h"

namespace CLI {
class App;
}

namespace chasqui {

enum class GuessSource { automatic, none, ngram, draft };  // automatic: draft where there is a model for it

struct SpeculationOptions {
  GuessSource source = GuessSource::automatic;
  TokenCount most = 7;              // guesses in one step: with its own row a sequence has eight, which kernels like
  TokenCount least = 0;             // … and at least so many, whether it pays or not
  std::string draft_model;          // its file; empty: there is none
  std::vector<double> pretended{};  // see EngineConfig::guess_chances

  TokenCount guesses_max() const { return drafts() || source == GuessSource::ngram ? most : 0; }
  bool drafts() const {
    return source == GuessSource::draft || (source == GuessSource::automatic && !draft_model.empty());
  }
};

// `options` outlives the parsing.
void add_speculation_options(CLI::App& app, SpeculationOptions& options);

}  // namespace chasqui
