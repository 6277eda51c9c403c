#include "model/tokenizer.h"

namespace chasqui {

std::string detokenize(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) {
    if (token >= 0) text += tokenizer.special_piece(token);
  }
  return text;
}

}  // namespace chasqui
