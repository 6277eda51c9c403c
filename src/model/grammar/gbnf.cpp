#include "model/grammar/gbnf.h"

#include <algorithm>
#include <unordered_map>

#include "base/ascii.h"
#include "base/limits.h"
#include "model/grammar/utf8_ranges.h"

namespace chasqui {
namespace {

constexpr int kNestingMax = kCountLimit<"grammar_nesting">;
constexpr std::size_t kRulesMax = kSizeLimit<"grammar_rules">;
constexpr std::uint32_t kTimesMax = 1'000'000;
constexpr std::uint32_t kLastCharacter = 0x10FFFF;

bool is_word_character(char c) {
  return is_ascii_word(c) || c == '-';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Sorted and disjoint; what is no character is left out, U+0000 too: no token can say it.
std::vector<CodeRange> normalized(std::vector<CodeRange> ranges, bool inverse) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  std::vector<CodeRange> joined;
  for (const CodeRange& range : ranges) {
    if (range.first > range.last) continue;
    if (!joined.empty() && range.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  if (inverse) {
    std::vector<CodeRange> others;
    std::uint32_t next = 0;
    for (const CodeRange& range : joined) {
      if (range.first > next) others.push_back({next, range.first - 1});
      next = std::max(next, std::min(range.last, kLastCharacter) + 1);
    }
    if (next <= kLastCharacter) others.push_back({next, kLastCharacter});
    joined = std::move(others);
  }
  std::vector<CodeRange> out;
  for (const CodeRange& range : joined) {
    for (const CodeRange valid : {CodeRange{1, 0xD7FF}, CodeRange{0xE000, kLastCharacter}}) {
      const CodeRange both{std::max(range.first, valid.first), std::min(range.last, valid.last)};
      if (both.first <= both.last) out.push_back(both);
    }
  }
  return out;
}

// Each function leaves `at_` behind what it has read; once failed() the rest is not looked at.
class GbnfReader {
 public:
  GbnfReader(std::string_view text, const TokenByName& token_by_name) : text_(text), token_by_name_(token_by_name) {}

  Result<Gbnf> read() {
    skip(true);
    while (!failed() && at_ < text_.size()) read_rule();
    if (!failed()) check_rules();
    if (failed()) return invalid_field("grammar", "grammar must be valid GBNF with a rule named root: " + why_);
    return std::move(gbnf_);
  }

 private:
  bool failed() const { return !why_.empty(); }

  void fail(const std::string& why) {
    if (failed()) return;
    DCHECK(at_ <= text_.size());
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    why_ = "line " + std::to_string(line) + (name_.empty() ? "" : ", rule " + name_) + ": " + why;
  }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (is_word_character(peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  std::uint32_t rule_named(std::string_view name) {
    const auto [found, added] = indices_.try_emplace(std::string(name), static_cast<std::uint32_t>(gbnf_.rules.size()));
    if (added) gbnf_.rules.push_back({std::string(name), {}, false});
    if (gbnf_.rules.size() > kRulesMax) fail("there may be at most " + std::to_string(kRulesMax) + " rules");
    return found->second;
  }

  void read_rule() {
    const std::string_view name = word();
    if (name.empty()) return fail("the name of a rule is expected");
    name_ = name;
    const std::uint32_t index = rule_named(name);
    skip(false);
    if (text_.substr(at_, 3) != "::=") return fail("::= is expected after the name");
    at_ += 3;
    skip(true);
    GbnfPart body = choice(0);
    if (failed()) return;
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') {
      return fail(std::string("a rule cannot go on with '") + peek() + "'");
    }
    gbnf_.rules[index].body = std::move(body);
    gbnf_.rules[index].defined = true;
    skip(true);
    name_.clear();
  }

  void check_rules() {
    for (const GbnfRule& rule : gbnf_.rules) {
      if (!rule.defined) return fail("rule " + rule.name + " is used but not defined");
    }
    const auto root = indices_.find("root");
    if (root == indices_.end()) return fail("there is no rule root");
    gbnf_.root = root->second;
  }

  GbnfPart choice(int depth) {
    GbnfPart out{.kind = GbnfPart::Kind::choice};
    if (depth > kNestingMax) fail("groups may be nested at most " + std::to_string(kNestingMax) + " levels deep");
    while (!failed()) {
      out.parts.push_back(sequence(depth));
      if (peek() != '|') break;
      ++at_;
      skip(true);
    }
    return out;
  }

  GbnfPart sequence(int depth) {
    const bool nested = depth > 0;
    GbnfPart out{.kind = GbnfPart::Kind::sequence};
    while (!failed() && at_ < text_.size()) {
      const char c = peek();
      if (c == '"') {
        out.parts.push_back(literal());
      } else if (c == '[') {
        out.parts.push_back(characters());
      } else if (c == '.') {
        ++at_;
        out.parts.push_back({.kind = GbnfPart::Kind::characters, .ranges = normalized({}, true)});
      } else if (c == '<' || c == '!') {
        out.parts.push_back(token());
      } else if (is_word_character(c)) {
        out.parts.push_back({.kind = GbnfPart::Kind::rule, .rule = rule_named(word())});
      } else if (c == '(') {
        ++at_;
        skip(true);
        out.parts.push_back(choice(depth + 1));
        if (peek() != ')') fail("a group is not closed with )");
        ++at_;
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (out.parts.empty()) fail(std::string("there is nothing that '") + c + "' could repeat");
        if (!failed()) out.parts.back() = repeated(std::move(out.parts.back()), nested);
      } else {
        break;
      }
      skip(nested);
    }
    return out;
  }

  GbnfPart repeated(GbnfPart what, bool nested) {
    GbnfPart out{.kind = GbnfPart::Kind::repeat};
    const char c = peek();
    ++at_;
    out.least = c == '+' ? 1 : 0;
    out.most = c == '?' ? 1 : GbnfPart::kNoLimit;
    if (c == '{') read_times(out, nested);
    // Without this a{0,3}{0,3}… is a tree that is deeper than its brackets.
    if (what.kind == GbnfPart::Kind::repeat && ++repeats_in_a_row_ > kNestingMax) fail("too many repetitions in a row");
    if (what.kind != GbnfPart::Kind::repeat) repeats_in_a_row_ = 0;
    out.parts.push_back(std::move(what));
    return out;
  }

  void read_times(GbnfPart& out, bool nested) {
    skip(nested);
    out.least = out.most = number();
    skip(nested);
    if (peek() == ',') {
      ++at_;
      skip(nested);
      out.most = is_digit(peek()) ? number() : GbnfPart::kNoLimit;
      skip(nested);
    }
    if (peek() != '}') return fail("a repetition is written {n}, {m,n} or {m,}");
    ++at_;
    if (out.most < out.least) fail("a repetition ends below where it begins");
  }

  std::uint32_t number() {
    if (!is_digit(peek())) fail("a number is expected");
    std::uint32_t value = 0;
    while (is_digit(peek())) {
      value = std::min(value * 10 + static_cast<std::uint32_t>(peek() - '0'), kTimesMax);
      ++at_;
    }
    return value;
  }

  GbnfPart literal() {
    GbnfPart out{.kind = GbnfPart::Kind::text};
    ++at_;
    while (!failed() && peek() != '"') {
      const std::uint32_t character = one_character();
      if (failed()) break;
      if (!is_character(character) || character == 0) {
        fail("a literal holds a code that is no Unicode character, or U+0000");
      } else {
        append_utf8(out.text, character);
      }
    }
    ++at_;
    return out;
  }

  // As in libllama, a class without any character stands for nothing at all, and matches it.
  GbnfPart characters() {
    ++at_;
    const bool inverse = peek() == '^';
    if (inverse) ++at_;
    std::vector<CodeRange> ranges;
    while (!failed() && peek() != ']') {
      CodeRange range;
      range.first = range.last = one_character();
      if (!failed() && peek() == '-' && peek(1) != ']') {
        ++at_;
        range.last = one_character();
      }
      ranges.push_back(range);
    }
    ++at_;
    if (ranges.empty()) return {.kind = GbnfPart::Kind::text};
    return {.kind = GbnfPart::Kind::characters, .ranges = normalized(std::move(ranges), inverse)};
  }

  std::uint32_t one_character() {
    if (at_ >= text_.size()) return fail("a literal or a class has no end"), 0;
    if (peek() != '\\') {
      std::uint32_t character = 0;
      const std::size_t bytes = read_utf8(text_.substr(at_), character);
      if (bytes == 0) return fail("the text is not valid UTF-8"), 0;
      at_ += bytes;
      return character;
    }
    if (at_ + 1 >= text_.size()) return fail("a literal or a class has no end"), 0;
    const char escape = peek(1);
    at_ += 2;
    switch (escape) {
      case 'x': return hexadecimal(2);
      case 'u': return hexadecimal(4);
      case 'U': return hexadecimal(8);
      case 't': return '\t';
      case 'r': return '\r';
      case 'n': return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-': return static_cast<std::uint32_t>(escape);
      default: return fail(std::string("there is no escape \\") + escape), 0;
    }
  }

  std::uint32_t hexadecimal(int digits) {
    std::uint32_t value = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!is_digit(c) && !letter) {
        return fail("an escape needs " + std::to_string(digits) + " hexadecimal digits"), 0;
      }
      value = value << 4 | static_cast<std::uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
  }

  GbnfPart token() {
    GbnfPart out{.kind = GbnfPart::Kind::token};
    out.inverse = peek() == '!';
    if (out.inverse) ++at_;
    const std::size_t end = text_.find('>', at_);
    if (peek() != '<' || end == text_.npos) return fail("a token is written <name> or <[number]>"), out;
    const std::string_view written = text_.substr(at_, end + 1 - at_);
    if (peek(1) == '[') {
      at_ += 2;
      out.token = static_cast<Token>(number());
      if (!failed() && text_.substr(at_, 2) != "]>") fail("a token is written <name> or <[number]>");
      at_ += 2;
      return out;
    }
    const std::optional<Token> found = token_by_name_ ? token_by_name_(written) : std::nullopt;
    if (!found) fail(std::string(written) + " is not one token of the model");
    out.token = found.value_or(0);
    at_ = end + 1;
    return out;
  }

  const std::string_view text_;
  const TokenByName& token_by_name_;
  std::size_t at_ = 0;
  int repeats_in_a_row_ = 0;
  std::string why_;
  std::string name_;  // of the rule that is read
  std::unordered_map<std::string, std::uint32_t> indices_;
  Gbnf gbnf_;
};

}  // namespace

Result<Gbnf> parse_gbnf(std::string_view text, const TokenByName& token_by_name) {
  return GbnfReader(text, token_by_name).read();
}

}  // namespace chasqui
