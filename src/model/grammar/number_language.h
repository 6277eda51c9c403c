// Which numbers a JSON text may hold: between two bounds, multiples of something, whole or not. Written as rules of
// GBNF that compare digit by digit, so that bounds are kept exactly as they are written. Any thread.
//
// What is written is narrower than what fits: no exponent, and so few digits that a reader that keeps numbers as
// doubles does not round one onto a bound that it must not reach.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/grammar/rule_text.h"
#include "model/grammar/text_language.h"

namespace chasqui {

// A number by its digits. Holds: no zeros before `whole` but for "0", none behind `fraction`; zero is not negative.
struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string fraction = {};

  bool is_zero() const { return whole == "0" && fraction.empty(); }
  bool operator==(const Decimal&) const = default;

  // None: not digits with a point at most, or more than 400 of them.
  static std::optional<Decimal> of(std::string_view digits);
};

bool operator<(const Decimal& a, const Decimal& b);

struct NumberLanguage {
  struct Bound {
    Decimal value;
    bool open = false;  // the bound itself does not fit
  };
  std::optional<Bound> low;
  std::optional<Bound> high;
  std::vector<Decimal> steps;  // a multiple of each; positive
  bool whole = false;

  bool is_any() const { return !low && !high && steps.empty(); }
};

Written write_number_language(const NumberLanguage& language, RuleText& rules, std::string& out);

}  // namespace chasqui
