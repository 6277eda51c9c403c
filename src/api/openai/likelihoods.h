// How likely tokens were, in the three shapes that clients know. Pure writers; loop thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "core/event.h"
#include "model/tokenizer.h"

namespace chasqui {

// Of each token: itself, then the most likely ones. See Event::chances.
using TokenChances = std::vector<TokenChance>;

// Stands for the first token of a prompt, before which there is nothing that it could be likely after.
TokenChances first_of_prompt(Token token);

// How many of `chances`, the last of an answer, belong to its text: not the token that ended it, nor those of a stop
// string. `text_left` is how many bytes of the text these tokens have made.
std::size_t told_tokens(const Tokenizer& tokenizer, std::span<const TokenChances> chances, const Event& finished,
                        std::size_t text_left);

// Chat: {"content": [{token, logprob, bytes, top_logprobs}], "refusal": null}.
void write_chat_logprobs(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenChances> chances);
// The array in it, which is what Ollama has, too.
void write_logprob_list(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenChances> chances);
// Where the text of the next token begins, in characters.
struct TextOffset {
  std::size_t characters = 0;
  std::string_view echo = {};  // what is left of an echoed prompt
  std::size_t echoed = 0;      // tokens of it that come first
};
// Completions: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}; `offset` goes on.
void write_completion_logprobs(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenChances> chances,
                               TextOffset& offset);
// llama-server's completion_probabilities; `after`: probabilities as the samplers left them.
void write_probabilities(JsonWriter& json, const Tokenizer& tokenizer, std::span<const TokenChances> chances,
                         bool after);

}  // namespace chasqui
