// A token that may be drawn. A value.
#pragma once

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

}  // namespace chasqui
