// How long the model may think in one answer: after so many tokens between `begin` and one of `ends` it is made to say
// `forced`. Plain data.
#pragma once

#include <memory>
#include <vector>

#include "base/flag.h"
#include "core/types.h"

namespace chasqui {

struct ReasoningLimit {
  TokenCount tokens = 0;
  std::vector<Token> begin;
  std::vector<std::vector<Token>> ends;
  std::vector<Token> forced;
  std::vector<Token> begun;             // the end of the prompt, where thinking may have begun already
  std::shared_ptr<const Flag> end_now;  // raised by others, for an end before; null: never raised
};

}  // namespace chasqui
