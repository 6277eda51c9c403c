#include "model/vocabulary_identity.h"

#include <cstdint>
#include <span>
#include <string>

namespace chasqui {

Checksum identify_vocabulary(const Tokenizer& tokenizer) {
  Checksummer sum;
  std::string entry;
  for (Token token = 0; token < tokenizer.vocabulary(); ++token) {
    const std::string_view text = tokenizer.special_piece(token);
    const auto bytes = static_cast<std::uint32_t>(text.size());
    entry.clear();
    for (int shift = 0; shift < 32; shift += 8) entry += static_cast<char>(bytes >> shift & 255);
    entry += text;
    sum.add(std::as_bytes(std::span(entry)));
  }
  return sum.result();
}

}  // namespace chasqui
