#include "sched/moved_text.h"

#include <algorithm>
#include <iterator>

namespace chasqui {
namespace {

TokenCount common(std::span<const Token> a, std::span<const Token> b, std::size_t& budget) {
  a = a.first(std::min(a.size(), budget));
  const auto length = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  budget -= std::min(budget, length + 1);
  return static_cast<TokenCount>(length);
}

}  // namespace

MovedText find_moved_text(std::span<const Token> held, std::span<const Token> prompt, TokenCount chunk,
                          std::size_t& budget) {
  MovedText found;
  found.clean = found.length = found.end = common(held, prompt, budget);
  TokenCount gone = 0;
  TokenCount at = found.length;
  while (at < std::ssize(held) && found.length < std::ssize(prompt) && budget > 0) {
    const auto behind = static_cast<std::size_t>(at);
    const TokenCount same =
        common(held.subspan(behind), prompt.subspan(static_cast<std::size_t>(found.length)), budget);
    if (same < chunk) {
      ++at;
      continue;
    }
    if (at - gone > found.length) {
      found.gaps.push_back({found.length, at - gone});
      gone = at - found.length;
    }
    at += same;
    found.length += same;
    found.end = at;
  }
  return found;
}

}  // namespace chasqui
