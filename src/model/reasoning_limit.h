// How long the model may think in one answer: after so many tokens between `begin` and one of `ends` it is made to say
// `forced`. Plain data.
#pragma once

#include <vector>

#include "core/types.h"

namespace chasqui {

struct ReasoningLimit {
  TokenCount tokens = 0;
  std::vector<Token> begin;
  std::vector<std::vector<Token>> ends;
  std::vector<Token> forced;
  std::vector<Token> begun;  // the end of the prompt, where thinking may have begun already
};

}  // namespace chasqui
