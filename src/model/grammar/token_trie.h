// The tokens of a vocabulary as a tree of their bytes, in the order of a walk: a node is followed by what is below it.
// Made once for each model; constant afterwards, any thread.
//
// Most tokens are plain text: whole characters without quotes, backslashes and control characters. They are in a tree
// of their own, and sets of all those with so many characters at most are ready: where a grammar takes any plain text,
// as it does inside a string of JSON, nothing has to be walked for them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"

namespace chasqui {

// A set of tokens, as bits.
using TokenBits = std::vector<std::uint64_t>;

class TokenTrie {
 public:
  struct Node {
    std::uint32_t first = 0;  // of tokens(): those that end here, up to the next node's first
    std::uint32_t skip = 0;   // the node behind everything below this one
    std::uint16_t depth = 0;  // bytes, this one included
    std::uint8_t byte = 0;
  };
  struct Tree {
    std::vector<Node> nodes;  // and one behind the last
    std::vector<Token> tokens;
    std::uint16_t depth = 0;
  };
  static constexpr std::size_t kPlainMost = 16;  // characters of a token that counts as plain

  // `pieces` by token. What ends a generation is no text, nor is a token without bytes.
  TokenTrie(std::span<const std::string_view> pieces, std::span<const Token> end_of_generation);

  TokenCount vocabulary() const { return static_cast<TokenCount>(offsets_.size() - 1); }
  std::string_view piece(Token token) const;
  // Can be part of a text.
  bool is_text(Token token) const { return usable_[static_cast<std::size_t>(token)]; }
  std::span<const Token> end_of_generation() const { return ends_; }
  bool is_end(Token token) const;

  const Tree& plain() const { return plain_; }
  const Tree& others() const { return others_; }
  // Plain tokens with at most so many characters. REQUIRES: 1 ≤ characters ≤ kPlainMost
  const TokenBits& plain_up_to(std::size_t characters) const { return plain_up_to_[characters - 1]; }

  std::size_t bytes() const;

 private:
  std::string text_;
  std::vector<std::uint32_t> offsets_;
  std::vector<bool> usable_;
  std::vector<Token> ends_;
  Tree plain_;
  Tree others_;
  std::array<TokenBits, kPlainMost> plain_up_to_;
};

inline void add_token(TokenBits& bits, Token token) {
  bits[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (static_cast<std::size_t>(token) % 64);
}
inline bool has_token(const TokenBits& bits, Token token) {
  return (bits[static_cast<std::size_t>(token) / 64] >> (static_cast<std::size_t>(token) % 64) & 1) != 0;
}

}  // namespace chasqui
