// The vocabulary of a GGUF model. The text of every token is rendered once, at construction, so that piece() is two
// array reads. Const and thread-safe; holds on to the weights, which own the vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/llama_weights.h"
#include "model/special_cutter.h"
#include "model/tokenizer.h"

namespace chasqui {

class LlamaTokenizer final : public Tokenizer {
 public:
  explicit LlamaTokenizer(WeightsPtr weights);

  // The caller bounds the text; cost is about linear in it. Text over 1 GiB gives no tokens.
  std::vector<Token> tokenize(std::string_view text, AddSpecial add, ParseSpecial parse) const override;

  std::string_view piece(Token token) const override;
  std::string_view special_piece(Token token) const override;
  TokenCount vocabulary() const override { return static_cast<TokenCount>(pieces_.size()); }
  std::size_t piece_bytes_max() const override { return piece_bytes_max_; }
  bool is_end_of_generation(Token token) const override { return pieces_[static_cast<std::size_t>(token)].ends; }
  std::span<const Token> end_of_generation_tokens() const override { return end_of_generation_; }
  const llama_vocab* vocab() const { return weights_->vocab(); }

 private:
  struct Piece {
    std::uint32_t begin = 0;  // in text_
    std::uint32_t size = 0;
    bool hidden = false;  // a control token: text only as special_piece()
    bool ends = false;    // generation
  };

  bool append_tokens(std::string_view text, AddSpecial add, ParseSpecial parse, std::vector<Token>& out) const;

  const WeightsPtr weights_;
  // Constant after construction.
  std::string text_;
  std::vector<Piece> pieces_;
  std::size_t piece_bytes_max_ = 0;
  SpecialCutter parsed_cutter_;   // for ParseSpecial::yes
  SpecialCutter literal_cutter_;  // for ParseSpecial::no, which still knows user-defined tokens
  std::vector<Token> end_of_generation_;
};

}  // namespace chasqui
