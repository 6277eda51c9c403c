// Texts that end a repetition for DRY, as the sequences of tokens that hold them: a token that ends with the beginning
// of a text, and the tokens of what is left of it. Constant once made; all requests with the same texts share one.
//
// The sequences are those of libllama's sampler, kept as a tree of what follows the first token, so that looking at
// one more token costs the same whatever the texts are.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.h"
#include "model/tokenizer.h"

struct llama_vocab;

namespace chasqui {

// How each token of a vocabulary reads when it stands alone.
class TokenTexts {
 public:
  explicit TokenTexts(const llama_vocab* vocab);
  Token count() const { return static_cast<Token>(ends_.size()); }
  std::string_view operator[](Token token) const {
    const auto i = static_cast<std::size_t>(token);
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string text_;
  std::vector<std::uint32_t> ends_;
};

class DryBreakers {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = 0xffffffff;

  DryBreakers(std::vector<std::string> texts, const TokenTexts& tokens, const Tokenizer& tokenizer);

  const std::vector<std::string>& texts() const { return texts_; }
  // Some sequence begins with it.
  bool begins(Token token) const { return heads_[static_cast<std::size_t>(token)]; }
  // It holds all of a text.
  bool whole(Token token) const { return complete(kRoot, token); }
  Node after(Node node, Token token) const;
  // `head` and the tokens on the way to `node` are a sequence.
  bool complete(Node node, Token head) const;

 private:
  struct Place {
    std::map<Token, Node> next;
    std::vector<Token> heads;  // sorted
  };

  void add_text(const std::string& text, const TokenTexts& tokens, const Tokenizer& tokenizer);
  Node node_of(std::span<const Token> tail);

  const std::vector<std::string> texts_;
  std::vector<Place> places_{1};
  std::vector<bool> heads_;
};
using DryBreakersPtr = std::shared_ptr<const DryBreakers>;

}  // namespace chasqui
