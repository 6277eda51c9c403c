// The last tokens of a sequence, and how often each of them is there: what penalties look at. Of one sampler; one
// thread at a time. Grows with the tokens that come, however many a request wants to look back at.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/types.h"

namespace chasqui {

class PenaltyWindow {
 public:
  explicit PenaltyWindow(std::int32_t length) : length_(length) {}  // -1: all tokens, 0: none

  void push(Token token) {
    if (length_ == 0) return;
    ++counts_[token];
    if (length_ < 0) return;
    if (tokens_.size() < static_cast<std::size_t>(length_)) {
      tokens_.push_back(token);
      return;
    }
    const auto forgotten = counts_.find(std::exchange(tokens_[oldest_], token));
    if (--forgotten->second == 0) counts_.erase(forgotten);
    oldest_ = (oldest_ + 1) % tokens_.size();
  }

  const std::unordered_map<Token, std::int32_t>& counts() const { return counts_; }

 private:
  std::int32_t length_;
  std::unordered_map<Token, std::int32_t> counts_;
  std::vector<Token> tokens_;  // a ring, where the window is bounded
  std::size_t oldest_ = 0;
};

}  // namespace chasqui
