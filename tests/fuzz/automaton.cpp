// Grammars from their text to the tokens that they allow: whatever is read compiles or is refused, a mask says what
// asking about each token says, and what is allowed can be accepted. The first byte chooses the way through the
// grammar.
#include <string>
#include <vector>

#include "fuzz.h"
#include "model/grammar/grammar_matcher.h"
#include "model/grammar_shape.h"

namespace {

std::shared_ptr<const chasqui::TokenTrie> make_tokens() {
  static std::vector<std::string> words = {"\xC3", "\xA9", "\xC3\xA9", "ab", "abc", "\", \"",
                                           "  ",   "the",  "\"}",      "12", ""};
  for (int byte = 1; byte < 128; ++byte) words.emplace_back(1, static_cast<char>(byte));
  words.emplace_back("<end>");
  const std::vector<std::string_view> pieces(words.begin(), words.end());
  const std::vector<chasqui::Token> ends = {static_cast<chasqui::Token>(words.size() - 1)};
  return std::make_shared<const chasqui::TokenTrie>(pieces, ends);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  static const auto tokens = make_tokens();
  if (size == 0) return 0;
  const std::string_view text = text_of(bytes + 1, size - 1);
  if (!check_grammar_shape(text)) return 0;
  const auto read = parse_gbnf(text);
  if (!read) return must(!read.error().message.empty(), "a refusal says why"), 0;
  auto automaton = GrammarAutomaton::compile(*read);
  if (!automaton) return must(!automaton.error().message.empty(), "a refusal says why"), 0;
  const auto program = std::make_shared<const GrammarProgram>(
      GrammarProgram{std::make_shared<const GrammarAutomaton>(std::move(*automaton)), tokens});
  GrammarMasks masks(program);
  GrammarMatcher matcher(program);
  std::uint32_t choice = bytes[0];
  for (int step = 0; step < 12; ++step) {
    TokenMask mask = matcher.mask(masks);
    for (int again = 0; again < 3 && !mask.whole; ++again) mask = matcher.mask(masks);
    std::vector<Token> ways;
    for (Token token = 0; token < tokens->vocabulary(); ++token) {
      const bool has = mask.has(token);
      GrammarMatcher copy = matcher;
      if (mask.whole || has) must(copy.accept(token, masks) == has, "a mask has what can be accepted");
      if (has && !tokens->is_end(token)) ways.push_back(token);
    }
    if (ways.empty()) break;
    choice = choice * 1664525 + 1013904223;
    must(matcher.accept(ways[(choice >> 16) % ways.size()], masks), "what is allowed is accepted");
  }
  return 0;
}
