// Text to tokens and back. Const and thread-safe after construction: used by the offload pool (long prompts), the
// loop (short ones) and the workers (pieces).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/types.h"

namespace chasqui {

enum class AddSpecial { no, yes };    // add the model's begin (and end) tokens as its vocabulary says
enum class ParseSpecial { no, yes };  // "<|im_end|>" in the text becomes the control token

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::vector<Token> tokenize(std::string_view text, AddSpecial add, ParseSpecial parse) const = 0;

  // The bytes of one token, not necessarily whole characters. Control tokens render as text only in `special_piece`.
  // Views stay valid as long as the tokenizer. REQUIRES: 0 ≤ token < vocabulary()
  virtual std::string_view piece(Token token) const = 0;
  virtual std::string_view special_piece(Token token) const = 0;

  virtual TokenCount vocabulary() const = 0;
  // No token stands for more bytes of text than this; 0 when the vocabulary normalizes text, so that it is unknown.
  virtual std::size_t piece_bytes_max() const = 0;
  virtual bool is_end_of_generation(Token token) const = 0;
  // All tokens for which that is true; for ignore_eos.
  virtual std::span<const Token> end_of_generation_tokens() const = 0;
};

// Concatenated pieces; control tokens are rendered, since this shows what the model saw. Pictures and sounds have no
// text.
std::string detokenize(const Tokenizer& tokenizer, std::span<const Token> tokens);

}  // namespace chasqui
