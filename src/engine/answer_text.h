// The text of an answer that goes into a session, made of its tokens while they come, so that the end of a long answer
// costs no more than that of a short one. Owned by the Session; the thread of its table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "model/text_assembler.h"

namespace chasqui {

class AnswerText {
 public:
  // The answer follows on `history`. The tokenizer outlives this.
  AnswerText(const Tokenizer& tokenizer, std::span<const Token> history) : assembler_(tokenizer, {}, false) {
    assembler_.begin_after(history);
  }

  // The next token. Whether it ends the answer, and then is no part of the text, shows only when another one comes.
  void push(Token token) {
    if (tokens_++ > 0) assembler_.push(newest_, text_);
    newest_ = token;
  }

  // The text of these tokens, all of the answer, of which the first were pushed. REQUIRES: the end is not among them
  std::string take(std::span<const Token> answer) {
    const std::size_t done = tokens_ > 0 ? tokens_ - 1 : 0;
    for (const Token token : answer.subspan(std::min(done, answer.size()))) assembler_.push(token, text_);
    assembler_.finish(text_);
    return std::move(text_);
  }

 private:
  TextAssembler assembler_;
  std::string text_;
  std::size_t tokens_ = 0;
  Token newest_ = 0;
};

}  // namespace chasqui
