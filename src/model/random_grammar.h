// Small grammars for tests, drawn at random: every rule matches something, and none begins with itself. Pure.
#pragma once

#include <random>
#include <string>

namespace chasqui {

class RandomGrammar {
 public:
  explicit RandomGrammar(std::mt19937& random) : random_(random) {}

  std::string text() {
    rules_ = 1 + static_cast<int>(below(4));
    std::string out;
    for (int rule = 0; rule < rules_; ++rule) out += name(rule) + " ::= " + choice(rule, 0) + "\n";
    return out;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  static std::string name(int rule) { return rule == 0 ? "root" : "rule-" + std::to_string(rule); }

  template <std::size_t N>
  std::string one_of(const char* const (&words)[N]) {
    return words[below(N)];
  }

  std::string literal() {
    return one_of(
        {"\"a\"", "\"b\"", "\"ab\"", "\"the\"", "\"é\"", "\" x\"", "\"\\n\"", "\"\\\"\"", "\", \"", "\"12\""});
  }

  std::string choice(int rule, int depth) {
    std::string out = sequence(rule, depth);
    for (std::size_t more = below(3); more > 0; --more) out += " | " + sequence(rule, depth);
    return out;
  }

  std::string sequence(int rule, int depth) {
    std::string out = part(rule, depth);
    for (std::size_t more = below(3); more > 0; --more) out += " " + part(rule, depth);
    return out;
  }

  std::string part(int rule, int depth) {
    const std::string times = one_of({"", "", "", "", "?", "*", "+", "{2}", "{0,2}", "{1,3}", "{2,}"});
    switch (below(8)) {
      case 0:
      case 1: return literal() + times;
      case 2: return one_of({"[a-c]", "[^a\"]", "[à-ü]", "[0-9x]", "[^\\x00-\\x1F]", "[ \\t\\n]", "."}) + times;
      case 3:
        if (rule + 1 < rules_)
          return name(rule + 1 + static_cast<int>(below(static_cast<std::size_t>(rules_ - rule - 1)))) + times;
        return literal() + times;
      case 4: return "(" + literal() + " " + name(static_cast<int>(below(static_cast<std::size_t>(rules_)))) + ")?";
      case 5:
      case 6:
        if (depth < 2) return "(" + choice(rule, depth + 1) + ")" + times;
        return literal() + times;
      default: return literal();
    }
  }

  std::mt19937& random_;
  int rules_ = 1;
};

}  // namespace chasqui
