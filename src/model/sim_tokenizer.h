// The vocabulary and the chat template of the simulated engine: 256 bytes, three control tokens and some hundred
// English words, each with the space before it. Any bytes survive tokenize() and detokenize(). Const and thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/chat_template.h"
#include "model/tokenizer.h"

namespace chasqui {

class SimTokenizer final : public Tokenizer {
 public:
  static constexpr Token kImStart = 256;    // <|im_start|>
  static constexpr Token kImEnd = 257;      // <|im_end|>, ends generation
  static constexpr Token kEndOfText = 258;  // <|endoftext|>, ends generation
  static constexpr Token kFirstWord = 259;

  SimTokenizer();
  SimTokenizer(const SimTokenizer&) = delete;
  SimTokenizer& operator=(const SimTokenizer&) = delete;

  std::vector<Token> tokenize(std::string_view text, AddSpecial add, ParseSpecial parse) const override;
  std::string_view piece(Token token) const override;
  std::string_view special_piece(Token token) const override;
  TokenCount vocabulary() const override { return static_cast<TokenCount>(pieces_.size()); }
  std::size_t piece_bytes_max() const override { return std::max(word_bytes_max_, pieces_[kEndOfText].size()); }
  bool is_end_of_generation(Token token) const override { return token == kImEnd || token == kEndOfText; }
  std::span<const Token> end_of_generation_tokens() const override { return kEndTokens; }

 private:
  static constexpr std::array<Token, 2> kEndTokens{kImEnd, kEndOfText};

  Token longest_word(std::string_view text) const;

  // Constant after construction.
  std::vector<std::string> pieces_;
  std::unordered_map<std::string_view, Token> words_;  // keys point into pieces_
  std::size_t word_bytes_max_ = 0;
};

// ChatML. Tools are listed in the system message and calls written as <tool_call> blocks, as Qwen's template does.
class SimChatTemplate final : public ChatTemplate {
 public:
  Result<std::string> render(const Chat& chat) const override;
  std::string_view source() const override;
};

}  // namespace chasqui
