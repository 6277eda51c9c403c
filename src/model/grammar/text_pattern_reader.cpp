// Reads regular expressions into TextPattern.
#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "model/grammar/text_pattern.h"
#include "model/grammar/utf8_ranges.h"

namespace chasqui {
namespace {

constexpr int kPatternNestingMax = kCountLimit<"grammar_nesting">;
constexpr std::size_t kPatternStatesMax = kSizeLimit<"pattern_states">;
constexpr std::uint32_t kPatternTimesMax = kCountLimit<"schema_repeats">;

struct PatternPart {
  enum class Kind : std::uint8_t { characters, at_begin, at_end, sequence, choice, repeat };
  Kind kind = Kind::sequence;
  CodeSet set = {};
  std::vector<PatternPart> parts = {};
  std::uint32_t least = 1;
  std::uint32_t most = 1;
};

CodeSet shorthand_codes(char letter) {
  switch (letter | 0x20) {
    case 'd': return {{'0', '9'}};
    case 'w': return code_set({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {'_', '_'}});
    default:
      return code_set({{'\t', '\r'},
                       {' ', ' '},
                       {0xA0, 0xA0},
                       {0x1680, 0x1680},
                       {0x2000, 0x200A},
                       {0x2028, 0x2029},
                       {0x202F, 0x202F},
                       {0x205F, 0x205F},
                       {0x3000, 0x3000},
                       {0xFEFF, 0xFEFF}});
  }
}

bool is_shorthand_letter(char c) { return std::string_view("dDwWsS").find(c) != std::string_view::npos; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Each function leaves `at_` behind what it has read; once failed() the rest is not looked at.
class TextPatternReader {
 public:
  TextPatternReader(std::string_view text, TextPattern::Fault& fault) : text_(text), fault_(fault) {}

  std::optional<TextPattern> read() {
    const PatternPart whole = choice(0);
    if (!failed() && at_ < text_.size()) fail("closes a group that is not open");
    if (failed()) return std::nullopt;
    TextPattern out;
    const std::uint32_t begin = out.add_state();
    const std::uint32_t found = out.add_state();
    const std::uint32_t any = out.add_set({{0, kLastCode}});
    const std::uint32_t first = out.add_state();
    out.steps_[begin].push_back({TextPattern::Step::Kind::character, begin, any});
    out.steps_[begin].push_back({TextPattern::Step::Kind::nothing, first, 0});
    const std::uint32_t last = build(out, whole, first);
    out.steps_[last].push_back({TextPattern::Step::Kind::nothing, found, 0});
    out.steps_[found].push_back({TextPattern::Step::Kind::character, found, any});
    if (out.steps_.size() > kPatternStatesMax) {
      fail("is too large with its repetitions written out", true);
      return std::nullopt;
    }
    return out;
  }

 private:
  bool failed() const { return !fault_.why.empty(); }
  void fail(std::string why, bool unsupported = false) {
    if (!failed()) fault_ = {std::move(why), unsupported};
  }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  PatternPart choice(int depth) {
    PatternPart out{.kind = PatternPart::Kind::choice};
    if (depth > kPatternNestingMax) fail("is nested too deeply", true);
    do {
      if (!failed()) out.parts.push_back(sequence(depth));
    } while (!failed() && take("|"));
    return out;
  }

  PatternPart sequence(int depth) {
    PatternPart out{.kind = PatternPart::Kind::sequence};
    while (!failed() && at_ < text_.size() && peek() != '|' && peek() != ')') {
      const bool anchor = peek() == '^' || peek() == '$';
      PatternPart part = one(depth);
      if (!failed()) repeat(part, anchor);
      out.parts.push_back(std::move(part));
    }
    return out;
  }

  PatternPart one(int depth) {
    if (take("^")) return {.kind = PatternPart::Kind::at_begin};
    if (take("$")) return {.kind = PatternPart::Kind::at_end};
    if (take("(")) return group(depth);
    if (take("[")) return {.kind = PatternPart::Kind::characters, .set = read_class()};
    if (take(".")) {
      return {.kind = PatternPart::Kind::characters,
              .set = complement_of(code_set({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}))};
    }
    if (std::string_view("*+?{").find(peek()) != std::string_view::npos) fail("repeats nothing");
    if (peek() == '}' || peek() == ']') fail(std::string("has a ") + peek() + " that is not escaped");
    return {.kind = PatternPart::Kind::characters, .set = character(false)};
  }

  PatternPart group(int depth) {
    if (take("?")) {
      if (take("<")) {
        if (peek() == '=' || peek() == '!') fail("uses look-behind", true);
        const std::size_t end = text_.find('>', at_);
        if (end == text_.npos) fail("has a group whose name does not end");
        at_ = std::min(end, text_.size() - 1) + 1;
      } else if (!take(":")) {
        const bool ahead = peek() == '=' || peek() == '!';
        fail(ahead ? "uses look-ahead" : "has a group of an unknown kind", ahead);
      }
    }
    PatternPart out = choice(depth + 1);
    if (!failed() && !take(")")) fail("has a group that is not closed");
    return out;
  }

  void repeat(PatternPart& part, bool anchor) {
    std::uint32_t least = 0;
    std::uint32_t most = GbnfPart::kNoLimit;
    if (take("*")) {
    } else if (take("+")) {
      least = 1;
    } else if (take("?")) {
      most = 1;
    } else if (take("{")) {
      least = most = number();
      if (take(",")) most = is_decimal(peek()) ? number() : GbnfPart::kNoLimit;
      if (!take("}")) fail("has a { that begins no repetition");
      if (most < least) fail("has a repetition that ends below where it begins");
    } else {
      return;
    }
    take("?");  // lazy: the same texts
    if (anchor) fail("repeats an anchor");
    if (std::string_view("*+?{").find(peek()) != std::string_view::npos && peek() != '\0') fail("repeats a repetition");
    const bool counted = most != GbnfPart::kNoLimit ? most > kPatternTimesMax : least > kPatternTimesMax;
    if (counted) fail("repeats more than " + std::to_string(kPatternTimesMax) + " times", true);
    PatternPart out{.kind = PatternPart::Kind::repeat, .least = least, .most = most};
    out.parts.push_back(std::move(part));
    part = std::move(out);
  }

  std::uint32_t number() {
    if (!is_decimal(peek())) fail("has a { that begins no repetition");
    std::uint32_t value = 0;
    for (; is_decimal(peek()); ++at_) value = std::min<std::uint32_t>(value * 10 + (peek() - '0'), 1'000'000);
    return value;
  }

  CodeSet read_class() {
    const bool inverse = take("^");
    std::vector<CodeRange> ranges;
    while (!failed() && peek() != ']') {
      if (at_ >= text_.size()) {
        fail("has a class that is not closed");
        break;
      }
      const CodeSet first = character(true);
      const bool range = peek() == '-' && peek(1) != ']' && peek(1) != '\0';
      if (!range) {
        ranges.insert(ranges.end(), first.begin(), first.end());
        continue;
      }
      ++at_;
      const CodeSet last = character(true);
      if (failed()) break;
      const bool plain = is_one(first) && is_one(last);
      if (!plain || last.front().first < first.front().first) {
        fail("has a range in a class that is the wrong way round");
        break;
      }
      ranges.push_back({first.front().first, last.front().first});
    }
    ++at_;
    const CodeSet set = code_set(std::move(ranges));
    return inverse ? complement_of(set) : set;
  }

  static bool is_one(const CodeSet& set) { return set.size() == 1 && set.front().first == set.front().last; }

  CodeSet character(bool in_class) {
    if (failed()) return {};
    if (peek() == '\\') {
      ++at_;
      return escape(in_class);
    }
    std::uint32_t code = 0;
    const std::size_t bytes = read_utf8(text_.substr(at_), code);
    if (bytes == 0) return fail("is not valid UTF-8"), CodeSet{};
    at_ += bytes;
    return {{code, code}};
  }

  CodeSet escape(bool in_class) {
    if (at_ >= text_.size()) return fail("ends with a backslash"), CodeSet{};
    const char c = text_[at_++];
    if (is_shorthand_letter(c)) {
      const CodeSet set = shorthand_codes(c);
      return c >= 'a' ? set : complement_of(set);
    }
    static constexpr std::pair<char, std::uint32_t> kNamed[] = {
        {'t', '\t'}, {'n', '\n'}, {'r', '\r'}, {'f', '\f'}, {'v', '\v'}};
    for (const auto& [letter, code] : kNamed) {
      if (c == letter) return {{code, code}};
    }
    if (c == '0' && !is_decimal(peek())) return {{0, 0}};
    if (c == 'b' && in_class) return {{'\b', '\b'}};
    if (c == 'b' || c == 'B') return fail("uses a word boundary", true), CodeSet{};
    if (c == 'p' || c == 'P') return fail("uses properties of characters (\\p)", true), CodeSet{};
    if (c == 'k' || is_decimal(c)) return fail("refers back to a group", true), CodeSet{};
    if (c == 'c') {
      const char name = peek();
      if (!((name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z'))) {
        return fail("has an escape \\c without a letter"), CodeSet{};
      }
      const auto letter = static_cast<std::uint32_t>(name & 0x1F);
      ++at_;
      return {{letter, letter}};
    }
    if (c == 'x') return hexadecimal(2);
    if (c == 'u') return unicode();
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
    if (letter) return fail(std::string("has an unknown escape \\") + c), CodeSet{};
    const auto code = static_cast<std::uint32_t>(static_cast<unsigned char>(c));
    return {{code, code}};
  }

  CodeSet unicode() {
    if (take("{")) {
      std::uint32_t code = 0;
      int digits = 0;
      for (; hex_digit(peek()) >= 0; ++at_, ++digits) {
        code = std::min(code << 4 | static_cast<std::uint32_t>(hex_digit(peek())), kLastCode + 1);
      }
      if (digits == 0 || !take("}") || code > kLastCode)
        return fail("has an escape \\u that is no character"), CodeSet{};
      return {{code, code}};
    }
    CodeSet high = hexadecimal(4);
    if (failed() || high.front().first < 0xD800 || high.front().first > 0xDBFF) return high;
    if (!take("\\u")) return fail("has half of a surrogate pair", true), CodeSet{};
    const CodeSet low = hexadecimal(4);
    if (failed()) return {};
    const std::uint32_t code = 0x10000 + ((high.front().first - 0xD800) << 10) + (low.front().first - 0xDC00);
    if (low.front().first < 0xDC00 || low.front().first > 0xDFFF)
      return fail("has half of a surrogate pair", true), high;
    return {{code, code}};
  }

  CodeSet hexadecimal(int digits) {
    std::uint32_t code = 0;
    for (int i = 0; i < digits; ++i, ++at_) {
      if (hex_digit(peek()) < 0) return fail("has an escape with too few hexadecimal digits"), CodeSet{};
      code = code << 4 | static_cast<std::uint32_t>(hex_digit(peek()));
    }
    return {{code, code}};
  }

  // Returns the state behind `part`. Never adds a step into `from`.
  std::uint32_t build(TextPattern& out, const PatternPart& part, std::uint32_t from) {
    using Kind = TextPattern::Step::Kind;
    if (out.steps_.size() > kPatternStatesMax) return from;
    const auto step = [&](std::uint32_t at, Kind kind, std::uint32_t to, std::uint32_t set = 0) {
      out.steps_[at].push_back({kind, to, set});
      return to;
    };
    switch (part.kind) {
      case PatternPart::Kind::characters: return step(from, Kind::character, out.add_state(), out.add_set(part.set));
      case PatternPart::Kind::at_begin: return step(from, Kind::at_begin, out.add_state());
      case PatternPart::Kind::at_end: return step(from, Kind::at_end, out.add_state());
      case PatternPart::Kind::sequence:
        for (const PatternPart& each : part.parts) from = build(out, each, from);
        return from;
      case PatternPart::Kind::choice: {
        const std::uint32_t end = out.add_state();
        for (const PatternPart& each : part.parts) {
          const std::uint32_t begin = step(from, Kind::nothing, out.add_state());
          step(build(out, each, begin), Kind::nothing, end);
        }
        return end;
      }
      case PatternPart::Kind::repeat: break;
    }
    const PatternPart& what = part.parts.front();
    for (std::uint32_t i = 0; i < part.least && out.steps_.size() <= kPatternStatesMax; ++i) {
      from = build(out, what, step(from, Kind::nothing, out.add_state()));
    }
    const std::uint32_t end = out.add_state();
    if (part.most == GbnfPart::kNoLimit) {
      const std::uint32_t loop = step(from, Kind::nothing, out.add_state());
      const std::uint32_t begin = step(loop, Kind::nothing, out.add_state());
      step(build(out, what, begin), Kind::nothing, loop);
      return step(loop, Kind::nothing, end);
    }
    for (std::uint32_t i = part.least; i < part.most && out.steps_.size() <= kPatternStatesMax; ++i) {
      step(from, Kind::nothing, end);
      from = build(out, what, step(from, Kind::nothing, out.add_state()));
    }
    return step(from, Kind::nothing, end);
  }

  const std::string_view text_;
  TextPattern::Fault& fault_;
  std::size_t at_ = 0;
};

std::optional<TextPattern> TextPattern::read(std::string_view pattern, Fault& fault) {
  fault = {};
  return TextPatternReader(pattern, fault).read();
}

}  // namespace chasqui
