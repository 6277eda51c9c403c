// Tokens of one sequence to text that can be sent: whole UTF-8 characters only, and nothing that might still turn out
// to be the beginning of a stop string. Each byte is looked at once per stop string, however long the answer is.
// Owned by the sequence's runner entry; one thread at a time.
//
//   bytes of the token → pending_ (an incomplete character) → held_ (a possible stop string) → out
//
// Bytes that are not UTF-8 come out as U+FFFD, one for each longest beginning of a character.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer.h"

namespace chasqui {

class TextAssembler {
 public:
  // The tokenizer must outlive this. REQUIRES: no stop string is empty, all are UTF-8.
  TextAssembler(const Tokenizer& tokenizer, const std::vector<std::string>& stops, bool special_pieces);

  // Appends to `out` what this token makes safe to send. Returns the stop string that it completes, if any, else
  // null: then `out` ends right before the stop string, and nothing may be pushed any more. When several are
  // completed at the same character, the longest is reported and cut.
  const std::string* push(Token token, std::string& out);

  // The same for bytes that do not come from a token.
  const std::string* push_bytes(std::string_view bytes, std::string& out);

  // The end of the answer: appends what was held back, an incomplete character as U+FFFD. May complete a stop string
  // only if that contains U+FFFD.
  const std::string* flush(std::string& out);

  // The same, but an incomplete character is left out: its other bytes were not generated.
  void finish(std::string& out);

  // The text goes on behind these tokens: where they end inside a character, its first bytes belong to what is pushed
  // next. REQUIRES: nothing was pushed.
  void begin_after(std::span<const Token> tokens);

  // Bytes held back now: less than the longest stop string, and three.
  std::size_t held() const { return held_.size() + pending_.size(); }

 private:
  // Knuth-Morris-Pratt: after each byte, `matched` is how much of the beginning of `text` the output ends with.
  struct Stop {
    std::string text;
    std::vector<std::uint32_t> fallback;
    std::size_t matched = 0;
  };

  const std::string* append(std::string_view character, std::string& out);

  const Tokenizer& tokenizer_;
  const bool special_pieces_;
  std::vector<Stop> stops_;
  std::string pending_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace chasqui
