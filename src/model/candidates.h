// The passes over a whole vocabulary that sampling needs, made for rows of 150,000 logits: each is one sweep in blocks
// that a compiler turns into vector instructions. NaN never wins a comparison, so it counts as -infinity; +infinity is
// read as the largest float. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/types.h"

namespace chasqui {

struct Candidate {
  Token token = 0;
  float logit = 0;         // after bias and penalties, before the temperature
  double probability = 0;  // in the distribution that is drawn from
};

// Most likely first; equal ones in the order of their ids.
inline bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// The lowest id among the largest logits; -1 when no logit is above -infinity.
Token largest(std::span<const float> logits);

// The k largest, in no particular order; fewer when fewer are above -infinity.
void gather_top_k(std::span<const float> logits, std::size_t k, std::vector<Candidate>& out);

// All that are at least `least` and above -infinity, ids ascending.
void gather_at_least(std::span<const float> logits, float least, std::vector<Candidate>& out);

}  // namespace chasqui
