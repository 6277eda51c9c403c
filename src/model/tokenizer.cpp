#include "model/tokenizer.h"

namespace chasqui {

std::string detokenize(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string text;
  for (Token token : tokens) text += tokenizer.special_piece(token);
  return text;
}

}  // namespace chasqui
