// Says what its prompt tells it to, whatever the template around it: the bytes that stand there in hex as
// "say:48690a;", the last time that they do, and then ends. With a real vocabulary and template it makes the simulated
// engine answer in every format that models have, for tests. Const and thread-safe.
//
// A sequence that is put aside in the middle of its answer begins again, for what was said is its prompt then.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/sim_voice.h"
#include "model/tokenizer.h"

namespace chasqui {

class ForcedVoice final : public SimVoice {
 public:
  // REQUIRES: the vocabulary has a token that ends generation
  explicit ForcedVoice(std::shared_ptr<const Tokenizer> tokenizer);

  Next next(const SimHistory& history) const override;
  // Before the first token, as long as a prompt with "hang: SECONDS" says; an hour at most.
  Duration hang(const SimHistory& history) const override;

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const Token filler_;  // where the end is banned
};

// What a prompt with "say:48690a;" tells: "Hi\n". Empty where it tells nothing.
std::string forced_text(std::string_view prompt);

}  // namespace chasqui
