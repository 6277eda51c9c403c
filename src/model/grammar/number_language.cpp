#include "model/grammar/number_language.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>

namespace chasqui {
namespace {

constexpr std::size_t kDecimalDigitsMax = 400;
constexpr std::size_t kWholeDigits = 16;  // of a number without an upper bound
constexpr std::size_t kFractionDigits = 16;
constexpr std::size_t kExactDigits = 15;  // so many digits are told apart by doubles
constexpr std::size_t kStepDigits = 9;    // whether a fraction is a multiple of one is told by doubles for no more
constexpr std::size_t kStepStatesMax = 1500;
constexpr std::uint64_t kStepMax = 100'000;

bool is_decimal_digit(char c) { return c >= '0' && c <= '9'; }

std::strong_ordering magnitude_order(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() <=> b.whole.size();
  if (a.whole != b.whole) return a.whole <=> b.whole;
  return a.fraction <=> b.fraction;  // no zeros at their ends
}

struct Magnitudes {
  NumberLanguage::Bound low;
  NumberLanguage::Bound high = {};
  bool bounded = false;  // by `high`
};

// What a number without a sign is a multiple of: `step` of units of 10^-scale; it ends in so many zeros, which are not
// in `step`: a multiple of 1,000 is any number and three zeros, which is a small automaton.
struct Step {
  std::uint64_t step = 1;
  std::size_t scale = 0;
  std::size_t zeros = 0;
};

class MagnitudeWriter {
 public:
  MagnitudeWriter(Magnitudes range, Step step, bool whole, RuleText& rules)
      : low_(std::move(range.low)),
        high_(std::move(range.high)),
        bounded_(range.bounded),
        step_(step),
        end_('"' + std::string(step.zeros, '0') + '"'),
        rules_(rules) {
    const std::size_t low_size = low_.value.whole.size();
    if (high_.value.whole.size() > kWholeDigits + 1 && low_size <= kWholeDigits) bounded_ = false;
    whole_max_ = bounded_ ? high_.value.whole.size() : std::max(kWholeDigits - step_.zeros, low_size + 1);
    fraction_max_ = whole ? 0 : kFractionDigits;
    const bool low_open = low_.open && !low_.value.is_zero();
    if (low_open || (bounded_ && high_.open && !high_.value.is_zero())) {
      if (!bounded_) whole_max_ = std::max<std::size_t>(low_size, whole ? kExactDigits - step_.zeros : 9);
      fraction_max_ = std::min(fraction_max_, kExactDigits - std::min(whole_max_, kExactDigits));
    }
    if (step_.step > 1 || step_.scale > 0) {
      const std::size_t digits = std::max(std::to_string(step_.step).size() + 1, kStepStatesMax / step_.step);
      const std::size_t told = step_.scale == 0 ? kExactDigits : kStepDigits - std::min(step_.scale, kStepDigits - 3);
      whole_max_ = std::max(std::min({whole_max_, told, digits}), std::min(whole_max_, low_size + 1));
      if (!whole) fraction_max_ = step_.scale;
    }
  }

  // Empty: no number fits.
  std::string write() {
    std::map<std::string, std::string> digits;  // by what follows them
    for (char digit = '0'; digit <= '9'; ++digit) {
      const Order low = compare(digit, low_.value.whole[0]);
      const Order high = bounded_ ? compare(digit, high_.value.whole[0]) : Order::less;
      const std::uint64_t left = static_cast<std::uint64_t>(digit - '0') % modulus();
      const std::string rest =
          digit == '0' ? named(end_of_whole({1, low, high, left}, "\"\"")) : whole({1, low, high, left});
      if (!rest.empty()) digits[rest] += digit;
    }
    return joined(digits, "");
  }

  bool too_large() const { return too_large_; }

 private:
  enum class Order : std::int8_t { less, equal, greater };
  struct At {
    std::size_t digits = 0;  // so far, of this part
    Order low = Order::equal;
    Order high = Order::less;
    std::uint64_t left = 0;  // of a division by the step
    auto operator<=>(const At&) const = default;
  };

  static Order compare(char a, char b) { return a < b ? Order::less : a == b ? Order::equal : Order::greater; }

  // Scaling what is read by another power of ten keeps its remainder only modulo the step itself.
  std::uint64_t modulus() const { return step_.step; }

  std::string named(const std::string& body) { return body.empty() ? "" : rules_.rule(body); }

  static void add(std::string& body, const std::string& alternative) {
    if (alternative.empty()) return;
    if (!body.empty()) body += " | ";
    body += alternative;
  }

  static std::string joined(const std::map<std::string, std::string>& digits, std::string body) {
    for (const auto& [rest, which] : digits) {
      const bool run = which.back() - which.front() + 1 == static_cast<int>(which.size()) && which.size() > 2;
      const std::string shown = run ? std::string{which.front(), '-', which.back()} : which;
      add(body, '[' + shown + "] " + rest);
    }
    return body;
  }

  bool has_steps() const { return step_.step > 1 || step_.scale > 0; }

  // What may follow `at.digits` digits, the first of which is not 0: the name of a rule, or an expression.
  std::string whole(At at) {
    const std::size_t low_size = low_.value.whole.size();
    if (at.digits > low_size) at.low = Order::greater;
    if (bounded_ && at.digits > high_.value.whole.size()) return "";
    if (at.digits > whole_max_ || too_large_) return "";
    if (!has_steps() && at.low != Order::equal && (!bounded_ || at.high != Order::equal)) return free_whole(at);
    const auto known = wholes_.find(at);
    if (known != wholes_.end()) return known->second;
    if (wholes_.size() > 4 * kStepStatesMax) too_large_ = true;
    std::map<std::string, std::string> digits;
    for (char digit = '0'; digit <= '9' && at.digits < whole_max_; ++digit) {
      At next{at.digits + 1, at.low, at.high, (at.left * 10 + static_cast<std::uint64_t>(digit - '0')) % modulus()};
      if (at.digits < low_size && at.low == Order::equal) next.low = compare(digit, low_.value.whole[at.digits]);
      if (bounded_ && at.digits < high_.value.whole.size() && at.high == Order::equal) {
        next.high = compare(digit, high_.value.whole[at.digits]);
      }
      const std::string rest = whole(next);
      if (!rest.empty()) digits[rest] += digit;
    }
    return wholes_[at] = named(joined(digits, end_of_whole(at, end_)));
  }

  // Neither bound depends on the digits to come, only on how many there are.
  std::string free_whole(const At& at) {
    const std::size_t low_size = low_.value.whole.size();
    std::size_t least = at.digits < low_size ? low_size - at.digits : 0;
    if (at.digits <= low_size && at.low == Order::less) ++least;
    std::size_t most = whole_max_ - at.digits;
    if (bounded_) {
      const std::size_t room = high_.value.whole.size() - at.digits;
      if (at.high == Order::greater && room == 0) return "";
      most = std::min(most, at.high == Order::greater ? room - 1 : room);
    }
    if (most < least) return "";
    std::string out = most == 0 ? "" : times("[0-9]", least, most) + ' ';
    if (step_.zeros > 0) out += end_ + ' ';
    if (fraction_max_ > 0) out += "(\".\" " + times("[0-9]", 1, fraction_max_) + ")?";
    return out.empty() ? "\"\"" : out;
  }

  static std::string times(const std::string& what, std::size_t least, std::size_t most) {
    return gbnf_times(what, static_cast<std::uint32_t>(least), static_cast<std::uint32_t>(most));
  }

  // The end, or a point and more.
  std::string end_of_whole(const At& at, const std::string& end) {
    const std::size_t low_size = low_.value.whole.size();
    At fraction{0, at.low, at.high, at.left};
    if (at.digits < low_size || (at.digits == low_size && at.low == Order::less)) return "";
    if (at.digits > low_size) fraction.low = Order::greater;
    if (bounded_) {
      const std::size_t high_size = high_.value.whole.size();
      if (at.digits > high_size || (at.digits == high_size && at.high == Order::greater)) return "";
      if (at.digits < high_size) fraction.high = Order::less;
    }
    std::string body = may_end(fraction) ? end : "";
    const std::string more = fraction_digits(fraction);
    if (!more.empty()) add(body, "\".\" " + rules_.rule(more));
    return body;
  }

  bool may_end(const At& at) const {
    if (at.low == Order::equal && (low_.open || low_.value.fraction.size() > at.digits)) return false;
    if (bounded_ && at.high == Order::equal && high_.open && high_.value.fraction.size() <= at.digits) return false;
    std::uint64_t left = at.left;
    for (std::size_t i = at.digits; i < step_.scale; ++i) left = left * 10 % modulus();
    return left % modulus() == 0;
  }

  static char digit_at(const std::string& fraction, std::size_t index) {
    return index < fraction.size() ? fraction[index] : '0';
  }

  // One more digit of a fraction, and what follows it.
  std::string fraction_digits(const At& at) {
    if (at.digits >= fraction_max_ || too_large_) return "";
    if (!has_steps() && at.low == Order::greater && (!bounded_ || at.high == Order::less)) {
      return times("[0-9]", 1, fraction_max_ - at.digits);
    }
    const auto known = fractions_.find(at);
    if (known != fractions_.end()) return known->second;
    if (fractions_.size() > 4 * kStepStatesMax) too_large_ = true;
    std::map<std::string, std::string> digits;
    for (char digit = '0'; digit <= '9'; ++digit) {
      At next{at.digits + 1, at.low, at.high, (at.left * 10 + static_cast<std::uint64_t>(digit - '0')) % modulus()};
      if (at.low == Order::equal) next.low = compare(digit, digit_at(low_.value.fraction, at.digits));
      if (bounded_ && at.high == Order::equal) next.high = compare(digit, digit_at(high_.value.fraction, at.digits));
      if (next.low == Order::less || (bounded_ && next.high == Order::greater)) continue;
      std::string body = may_end(next) ? "\"\"" : "";
      add(body, fraction_digits(next));
      if (!body.empty()) digits[rules_.rule(body)] += digit;
    }
    return fractions_[at] = joined(digits, "");
  }

  const NumberLanguage::Bound low_;
  const NumberLanguage::Bound high_;
  bool bounded_;
  const Step step_;
  const std::string end_;  // of a number that is not zero
  RuleText& rules_;
  std::size_t whole_max_ = 0;
  std::size_t fraction_max_ = 0;
  std::map<At, std::string> wholes_;
  std::map<At, std::string> fractions_;
  bool too_large_ = false;
};

// None: too large.
std::optional<Step> joined_step(const NumberLanguage& language) {
  Step out;
  for (const Decimal& step : language.steps) out.scale = std::max(out.scale, step.fraction.size());
  std::vector<Decimal> steps = language.steps;
  if (language.whole && out.scale > 0) steps.push_back({.whole = "1"});
  if (out.scale > kFractionDigits) return std::nullopt;
  for (const Decimal& step : steps) {
    const std::string digits = step.whole + step.fraction + std::string(out.scale - step.fraction.size(), '0');
    if (digits.size() > 18) return std::nullopt;
    out.step = std::lcm(out.step, static_cast<std::uint64_t>(std::stoull(digits)));
    if (out.step > kStepMax) return std::nullopt;
  }
  for (; out.scale > 0 && out.step % 10 == 0; --out.scale) out.step /= 10;
  for (; out.scale == 0 && out.step % 10 == 0; ++out.zeros) out.step /= 10;
  return out;
}

bool is_empty(const Magnitudes& range) {
  if (!range.bounded) return false;
  const auto order = magnitude_order(range.low.value, range.high.value);
  return order > 0 || (order == 0 && (range.low.open || range.high.open));
}

// The bounds of what stands before so many zeros. None: nothing is between them.
std::optional<Magnitudes> without_zeros(Magnitudes range, std::size_t zeros) {
  if (zeros == 0) return range;
  for (NumberLanguage::Bound* const bound : {&range.low, &range.high}) {
    Decimal& value = bound->value;
    const std::size_t kept = value.whole.size() - std::min(value.whole.size(), zeros);
    const bool more = value.whole.find_first_not_of('0', kept) != std::string::npos || !value.fraction.empty();
    if (more) bound->open = bound == &range.low;
    value.whole = kept == 0 ? "0" : value.whole.substr(0, kept);
    value.fraction.clear();
  }
  return is_empty(range) ? std::nullopt : std::optional(std::move(range));
}

// Of numbers that are not negative, or by `negative` the others without their sign. None: there are none.
std::optional<Magnitudes> magnitudes_of(const NumberLanguage& language, bool negative) {
  const auto& near = negative ? language.high : language.low;
  const auto& far = negative ? language.low : language.high;
  Magnitudes out{.low = {{}, negative}};  // zero has no sign
  if (far) {
    if (far->value.negative != negative && !(far->value.is_zero() && !negative)) return std::nullopt;
    out.high = *far;
    out.high.value.negative = false;
    out.bounded = true;
  }
  if (near && near->value.negative == negative && !(negative && near->value.is_zero())) {
    out.low = *near;
    out.low.value.negative = false;
    if (negative && out.low.value.is_zero()) out.low.open = true;
  }
  return is_empty(out) ? std::nullopt : std::optional(std::move(out));
}

}  // namespace

std::optional<Decimal> Decimal::of(std::string_view digits) {
  Decimal out;
  if (digits.starts_with('-')) {
    out.negative = true;
    digits.remove_prefix(1);
  }
  if (digits.size() > kDecimalDigitsMax || digits.empty()) return std::nullopt;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  out.whole = digits.substr(0, point);
  out.fraction = point < digits.size() ? digits.substr(point + 1) : "";
  if (!std::ranges::all_of(out.whole, is_decimal_digit) || !std::ranges::all_of(out.fraction, is_decimal_digit)) {
    return std::nullopt;
  }
  out.whole.erase(0, std::min(out.whole.find_first_not_of('0'), out.whole.size()));
  if (out.whole.empty()) out.whole = "0";
  while (out.fraction.ends_with('0')) out.fraction.pop_back();
  if (out.is_zero()) out.negative = false;
  return out;
}

bool operator<(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative;
  return a.negative ? magnitude_order(b, a) < 0 : magnitude_order(a, b) < 0;
}

Written write_number_language(const NumberLanguage& language, RuleText& rules, std::string& out) {
  if (language.is_any()) {
    const std::string whole = "\"-\"? ([0] | [1-9] [0-9]{0,15})";
    out = rules.rule(language.whole ? whole : whole + " (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?");
    return Written::yes;
  }
  const std::optional<Step> step = joined_step(language);
  if (!step) return Written::too_large;
  const bool whole = language.whole || (!language.steps.empty() && step->scale == 0);
  out.clear();
  for (const bool negative : {false, true}) {
    auto range = magnitudes_of(language, negative);
    if (range) range = without_zeros(std::move(*range), step->zeros);
    if (!range) continue;
    MagnitudeWriter writer(std::move(*range), *step, whole, rules);
    const std::string written = writer.write();
    if (writer.too_large() || rules.too_large()) return Written::too_large;
    if (written.empty()) continue;
    if (!out.empty()) out += " | ";
    out += negative ? "\"-\" (" + written + ')' : written;
  }
  if (out.empty()) return Written::nothing_fits;
  out = rules.rule(out);
  return Written::yes;
}

}  // namespace chasqui
