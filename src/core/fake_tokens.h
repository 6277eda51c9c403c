// Tokens for tests, where which they are does not matter. Any thread.
#pragma once

#include <numeric>
#include <vector>

#include "core/request.h"

namespace chasqui {

// `size` tokens: `from`, `from` + 1 and so on.
inline std::vector<Token> counting(std::size_t size, Token from = 0) {
  std::vector<Token> tokens(size);
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

inline std::vector<Token> with(std::vector<Token> tokens, const std::vector<Token>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

}  // namespace chasqui
