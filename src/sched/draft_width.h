// What chooses: how many rows of a decode step each sequence gets, for its next token and for draft tokens. More rows
// bring more tokens, as far as they are accepted, and take longer: that width is the best which brings most tokens a
// second, in time. Pure.
#pragma once

#include <span>

#include "core/types.h"

namespace chasqui {

// A step in which each sequence has so many rows: the n-th option is that of n rows, the first one that without draft
// tokens.
struct WidthOption {
  double tokens = 1;   // that it is expected to bring
  double seconds = 1;  // … to take
  double hope = 1;     // … at best, as a share of that
  bool seen = true;    // such a step has been computed before
};

struct WidthLimits {
  double seconds = 0;       // that the step may take
  TokenCount least = 1;     // rows that each sequence has, whatever that takes
  TokenCount before = 1;    // … had in the step before
  double turn_seconds = 0;  // that a step takes longer which has another width than the one before
};

struct WidthChoice {
  struct Width {
    TokenCount width = 1;
    double rate = 0;  // tokens a second
  };
  Width best;                // as expected
  Width hoped;               // … if what is not known well is as quick as it may be
  bool hopes = false;        // that is another one, and better
  TokenCount reachable = 1;  // the widest that may be in time
};

// REQUIRES: there is an option
WidthChoice choose_width(std::span<const WidthOption> options, const WidthLimits& limits);

}  // namespace chasqui
