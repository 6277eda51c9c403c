// A prompt with a gap that the model fills in, put together from its parts, for models whose vocabulary has the tokens
// for it: POST /infill, and `suffix` of completions. Any thread; `served` is only read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/core/served_model.h"
#include "base/error.h"

namespace chasqui {

class GapTokens {
 public:
  explicit GapTokens(const ServedModel& served) : tokenizer_(*served.model.tokenizer) {}
  void add(std::string_view text) { add(tokenizer_.tokenize(text, AddSpecial::no, ParseSpecial::no)); }
  void add(const std::vector<Token>& tokens) { all.insert(all.end(), tokens.begin(), tokens.end()); }
  void add(Token token) {
    if (token >= 0) all.push_back(token);
  }
  std::vector<Token> all;

 private:
  const Tokenizer& tokenizer_;
};

// For models without those tokens.
Error no_infill(const std::string& field);

// The marked parts in the model's order, or with what comes after the gap first where the server was told so.
void add_gap(const ServedModel& served, const GapTokens& before, const GapTokens& after, GapTokens& out);

// What comes after the gap of one or several prompts. Errors name `suffix`.
Result<std::vector<Token>> read_suffix(const ServedModel& served, std::string_view suffix);
// What comes before the gap, and what comes after it. The error: together they are too long.
Result<std::vector<Token>> around_gap(const ServedModel& served, std::vector<Token> prefix,
                                      const std::vector<Token>& suffix);

}  // namespace chasqui
