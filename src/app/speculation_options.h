// The flags of `chasqui serve` for speculative decoding. Part of app/config.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "core/types.h"

namespace CLI {
class App;
}

namespace chasqui {

// automatic: what the file for --model-draft is good for, if there is one; eagle3, mtp: see model/heads.h
enum class DraftSource { automatic, none, ngram, draft, eagle3, mtp };

struct SpeculationOptions {
  DraftSource source = DraftSource::automatic;
  std::optional<TokenCount> most;              // draft tokens in one step; none: as `draft_tokens_max()` has it
  TokenCount least = 0;                        // … and at least so many, whether it pays or not
  TokenCount ngram = 3;                        // last tokens that are looked for, where they are the source
  std::string draft_model;                     // its file; empty: there is none
  std::string draft_repo{};                    // … where that is of what it means; empty: a file was named
  std::vector<double> synthetic_acceptance{};  // see EngineConfig::synthetic_acceptance

  // With its own row a sequence has eight, which kernels like. Heads make all of them whatever is wanted, and are
  // seldom right about the fourth.
  TokenCount draft_tokens_max() const {
    if (source == DraftSource::none || (source == DraftSource::automatic && draft_model.empty())) return 0;
    return std::min(most.value_or(heads() ? 3 : 7), TokenCount{kCountLimit<"draft_tokens">});
  }
  bool drafts() const {
    return source == DraftSource::draft || (source == DraftSource::automatic && !draft_model.empty());
  }
  bool heads() const { return source == DraftSource::eagle3 || source == DraftSource::mtp; }
};

// `options` outlives the parsing.
void add_speculation_options(CLI::App& app, SpeculationOptions& options);

}  // namespace chasqui
