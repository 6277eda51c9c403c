// For the tests of this folder: a grammar and a vocabulary of a few words, and what they say to a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/grammar/grammar_matcher.h"

namespace chasqui {

inline std::shared_ptr<const GrammarAutomaton> test_automaton(std::string_view text) {
  const auto read = parse_gbnf(text);
  CHECK(read);
  auto made = GrammarAutomaton::compile(*read);
  CHECK(made);
  return std::make_shared<const GrammarAutomaton>(std::move(*made));
}

// The last token ends the generation.
inline std::shared_ptr<const TokenTrie> test_tokens(const std::vector<std::string>& words) {
  std::vector<std::string_view> pieces(words.begin(), words.end());
  pieces.push_back("<end>");
  const std::vector<Token> ends = {static_cast<Token>(words.size())};
  return std::make_shared<const TokenTrie>(pieces, ends);
}

inline GrammarProgramPtr test_program(std::string_view text, const std::vector<std::string>& words) {
  return std::make_shared<const GrammarProgram>(GrammarProgram{test_automaton(text), test_tokens(words)});
}

}  // namespace chasqui
