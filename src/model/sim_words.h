// How the simulated engine talks with a vocabulary of its own: in word salad that depends on the hash of the history.
// About one token in `answer_tokens` is <|im_end|>; when that is banned (ignore_eos) the runner-up, a word, takes its
// place. A ChatML prompt whose last user message is "say: TEXT" is answered with TEXT; the step that begins the answer
// to "hang: SECONDS" takes so much longer. Const and thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/sim_tokenizer.h"
#include "model/sim_voice.h"

namespace chasqui {

class SimWords final : public SimVoice {
 public:
  // `answer_tokens`: mean length of an answer.
  SimWords(std::shared_ptr<const SimTokenizer> tokenizer, std::int32_t answer_tokens);

  Next next(const SimHistory& history) const override;
  Duration hang(const SimHistory& history) const override;

 private:
  // What the last user has asked for behind the words `begin`, and how many tokens of the answer are there.
  struct Turn {
    std::string text;
    std::size_t said = 0;
  };
  std::optional<Turn> last_turn(std::span<const Token> all, std::span<const Token> begin) const;
  Token word(const SimHistory& history) const;
  bool ends(const SimHistory& history) const;
  Token echo(std::span<const Token> all) const;

  const std::shared_ptr<const SimTokenizer> tokenizer_;
  const std::int32_t answer_tokens_;
  const std::vector<Token> assistant_;   // "assistant\n"
  const std::vector<Token> user_says_;   // "user\nsay:"
  const std::vector<Token> user_hangs_;  // "user\nhang:"
};

}  // namespace chasqui
