#include "api/schema/schema_pattern.h"

#include <bitset>
#include <charconv>
#include <utility>

#include "base/ascii.h"
#include "base/limits.h"

namespace chasqui {
namespace {

constexpr std::size_t kPatternBytes = kSizeLimit<"pattern_bytes">;
constexpr int kPatternDepthMax = kCountLimit<"pattern_depth">;
constexpr int kPatternRepeatsMax = kCountLimit<"schema_repeats">;  // llama.cpp's grammars do not count further

#define CHASQUI_DATE                                                                                  \
  "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|" \
  "1[0-9]|2[0-8]))"

using Set = std::bitset<128>;  // of ASCII characters

// What may stand in a JSON string as it is.
bool plain(unsigned c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

class PatternReader {
 public:
  explicit PatternReader(std::string_view pattern) : text_(pattern) {}

  Result<std::string> run() {
    if (text_.size() > kPatternBytes) return error("may have at most 1024 bytes");
    if (text_.size() < 2 || text_.front() != '^' || text_.back() != '$')
      return error("must begin with ^ and end with $");
    text_ = text_.substr(1, text_.size() - 2);
    // ^a|b$ would be two patterns, each open at one end.
    int depth = 0;
    while (at_ < text_.size() && why_.empty()) {
      const char c = text_[at_];
      if (c == '|' && depth == 0) top_alternative_ = true;
      if (c == '(') {
        if (++depth > kPatternDepthMax) fail("is nested too deeply");
        if (at_ + 1 < text_.size() && text_[at_ + 1] == '?') skip_group_mark();
      }
      if (c == ')') --depth;
      step(c);
    }
    if (top_alternative_) fail("must have its alternatives in brackets: ^(a|b)$");
    if (depth != 0) fail("has unbalanced brackets");
    if (!why_.empty()) return error(why_);
    return "^" + out_ + "$";
  }

 private:
  static Error error(const std::string& why) { return invalid_field("pattern", why); }
  void fail(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }

  void skip_group_mark() {
    if (text_.substr(at_ + 1, 2) != "?:") return fail("may not look ahead or behind, nor name groups");
    out_ += '(';
    at_ += 3;
    skipped_ = true;
  }

  void step(char c) {
    if (std::exchange(skipped_, false)) return;
    const bool repeats = c == '*' || c == '+' || c == '?' || c == '{';
    if (repeats && !repeatable_) return fail("has a repetition of nothing, or of another repetition");
    repeatable_ = !repeats && c != '(' && c != '|';
    switch (c) {
      case '.': put_class(~Set(), true); break;
      case '[': return read_class();
      case '\\': return read_escape();
      case '^':
      case '$': return fail("may have ^ and $ only at its ends");
      case '{': return read_count();
      case '(':
      case ')':
      case '|':
      case '?':
      case '*':
      case '+': out_ += c; break;
      case ']':
      case '}': return fail("has a bracket that nothing opened");
      default:
        if (static_cast<unsigned char>(c) >= 0x80) return put_character();
        if (!plain(static_cast<unsigned char>(c))) {
          return fail("may not demand quotes, backslashes or control characters");
        }
        out_ += c;
    }
    ++at_;
    if (repeats && at_ < text_.size() && text_[at_] == '?') ++at_;  // lazy or not is the same for a whole match
  }

  void read_count() {
    const std::size_t end = text_.find('}', at_);
    const std::string_view inside = text_.substr(at_ + 1, end == text_.npos ? 0 : end - at_ - 1);
    int least = 0;
    int most = 0;
    const char* const stop = inside.data() + inside.size();
    const char* at = std::from_chars(inside.data(), stop, least).ptr;
    most = least;
    if (at != inside.data() && at != stop && *at == ',') {
      ++at;
      if (at != stop) at = std::from_chars(at, stop, most).ptr;
    }
    if (inside.empty() || inside.size() > 9 || inside[0] == ',' || inside[0] == '-' || at != stop || most < least) {
      return fail("has a count that is no {n}, {n,} or {n,m}");
    }
    if (most > kPatternRepeatsMax) return fail("may count to 2000 at most");
    out_ += text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    if (at_ < text_.size() && text_[at_] == '?') ++at_;
  }

  static void shorthand(char c, Set& set) {
    for (unsigned i = 0; i < 128; ++i) {
      const bool digit = i >= '0' && i <= '9';
      const bool word = digit || (i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z') || i == '_';
      const bool space = i == ' ' || (i >= '\t' && i <= '\r');
      if (c == 'd' ? digit : c == 'D' ? !digit : c == 'w' ? word : c == 'W' ? !word : c == 's' ? space : !space)
        set.set(i);
    }
  }
  static bool is_shorthand(char c) { return std::string_view("dDwWsS").find(c) != std::string_view::npos; }

  void read_escape() {
    if (at_ + 1 >= text_.size()) return fail("ends with a backslash");
    const char c = text_[at_ + 1];
    at_ += 2;
    if (is_shorthand(c)) {
      Set set;
      shorthand(c, set);
      return put_class(set, c == 'D' || c == 'W' || c == 'S');
    }
    if (is_ascii_word(c)) {
      return fail(std::string("has an escape that is not supported: \\") + c);
    }
    if (!plain(static_cast<unsigned char>(c))) return fail("may not demand quotes, backslashes or control characters");
    Set set;
    set.set(static_cast<unsigned char>(c));
    put_class(set, false);
  }

  // One character of a class; -1 where it is a shorthand, which is added.
  int class_character(Set& set) {
    char c = text_[at_++];
    if (c == '\\' && at_ < text_.size()) {
      c = text_[at_++];
      if (is_shorthand(c)) {
        shorthand(c, set);
        return -1;
      }
      if (c == 'n') return '\n';
      if (c == 't') return '\t';
      if (c == 'r') return '\r';
      if (is_ascii_word(c)) {
        fail(std::string("has an escape that is not supported: \\") + c);
      }
    }
    if (static_cast<unsigned char>(c) >= 0x80) fail("may have only ASCII characters in classes");
    return static_cast<unsigned char>(c) & 0x7f;
  }

  void read_class() {
    ++at_;
    const bool negated = at_ < text_.size() && text_[at_] == '^';
    if (negated) ++at_;
    Set set;
    while (at_ < text_.size() && text_[at_] != ']') {
      const int first = class_character(set);
      const bool range = first >= 0 && at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']';
      if (first >= 0) set.set(static_cast<std::size_t>(first));
      if (!range) continue;
      ++at_;
      const int last = class_character(set);
      if (last < first) return fail("has a range that is the wrong way round");
      for (int i = first; i <= last; ++i) set.set(static_cast<std::size_t>(i));
    }
    if (at_ >= text_.size()) return fail("has a class without an end");
    put_class(negated ? ~set : set, negated);
    ++at_;
  }

  // One character of several bytes, as a class: what repeats it must not repeat its last byte.
  void put_character() {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && (static_cast<unsigned char>(text_[at_]) & 0xC0) == 0x80) ++at_;
    out_ += '[' + std::string(text_.substr(begin, at_ - begin)) + ']';
  }

  // Every character as \xHH, which neither the class nor the grammar could mistake; with `beyond` those that are not
  // ASCII, too.
  void put_class(const Set& set, bool beyond) {
    static constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string inside;
    const auto put = [&inside](unsigned c) {
      inside += "\\x";
      inside += kHex[c >> 4];
      inside += kHex[c & 15];
    };
    for (unsigned i = 0; i < 128; ++i) {
      if (!set[i] || !plain(i)) continue;
      unsigned end = i;
      while (end + 1 < 128 && set[end + 1] && plain(end + 1)) ++end;
      put(i);
      if (end > i) {
        inside += '-';
        put(end);
      }
      i = end;
    }
    if (beyond) inside += "\\U00000080-\\U0010FFFF";
    if (inside.empty()) return fail("has a class of nothing that JSON could hold without escapes");
    out_ += '[' + inside + ']';
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
  std::string why_;
  bool skipped_ = false;
  bool repeatable_ = false;  // something came that a repetition may follow
  bool top_alternative_ = false;
};

}  // namespace

Result<std::string> safe_pattern(std::string_view pattern) { return PatternReader(pattern).run(); }

std::string_view pattern_of_format(std::string_view format) {
  if (format == "date") return "^" CHASQUI_DATE "$";
  if (format == "date-time") {
    return "^" CHASQUI_DATE
           "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$";
  }
  if (format == "email") return "^[a-zA-Z0-9_]{1,32}([.][a-zA-Z0-9_]{1,32}){0,3}@[a-z0-9]{1,32}([.][a-z]{2,16}){1,3}$";
  if (format == "ipv4")
    return "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$";
  return {};
}

}  // namespace chasqui
