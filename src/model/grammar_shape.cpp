#include "model/grammar_shape.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "model/grammar/gbnf.h"

namespace chasqui {
namespace {

constexpr std::size_t kBytesMax = kSizeLimit<"grammar_made_bytes">;  // what a schema of 64 KiB may become
constexpr int kNestingMax = kCountLimit<"grammar_nesting">;
constexpr std::size_t kRulesMax = kSizeLimit<"grammar_rules">;
constexpr double kWaysMax = kCountLimit<"grammar_ways">;    // to the next character, from any place
constexpr double kSkipsMax = kCountLimit<"grammar_skips">;  // of what may be left out, one after the other
constexpr double kCellsMax = kCountLimit<"grammar_cells">;  // of the stacks of all ways from one place
constexpr double kMadeRulesMax = kCountLimit<"grammar_made_rules">;
constexpr double kElementsMax = kCountLimit<"grammar_elements">;
constexpr double kElementBytes = 8;
constexpr double kCap = 1e15;

struct Element {
  std::string rule;  // empty: a group, or a terminal when there are no alternatives
  std::vector<std::vector<Element>> alternatives;
  double size = 1;  // in elements of the compiler
  int least = 1;
  int most = 1;  // -1: no limit

  bool is_terminal() const { return rule.empty() && alternatives.empty(); }
};
using Sequence = std::vector<Element>;
using Alternatives = std::vector<Sequence>;
using Rules = std::unordered_map<std::string, Alternatives>;

// From one place on.
struct Ways {
  double forward = 1;  // to a terminal
  double empty = 0;    // through, without any
  double skips = 0;    // the most that is left out on a way
  double cells = 1;    // of the stacks that the ways to a terminal have
};

class GrammarReader {
 public:
  explicit GrammarReader(std::string_view text) : text_(text) {}

  // False: it cannot be read, or it is nested too deeply.
  bool read() {
    skip(true);
    while (at_ < text_.size()) {
      const std::string name = word();
      skip(false);
      if (name.empty() || text_.substr(at_, 3) != "::=") return false;
      at_ += 3;
      skip(true);
      Alternatives body = alternatives(0);
      if (failed_) return false;
      rules_[name] = std::move(body);
      skip(true);
    }
    return true;
  }

  bool too_deep() const { return too_deep_; }
  const Rules& rules() const { return rules_; }

 private:
  void skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '-'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  // How many elements its characters become, at most: one for each byte.
  double quoted(char end) {
    const std::size_t begin = at_ + 1;
    for (++at_; at_ < text_.size() && text_[at_] != end; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    if (at_ >= text_.size()) failed_ = true;
    ++at_;
    return failed_ ? 0 : static_cast<double>(at_ - 1 - begin);
  }

  Alternatives alternatives(int depth) {
    Alternatives out;
    if (depth > kNestingMax) too_deep_ = failed_ = true;
    while (!failed_) {
      out.push_back(sequence(depth));
      skip(depth > 0);
      if (at_ >= text_.size() || text_[at_] != '|') break;
      ++at_;
      skip(true);
    }
    return out;
  }

  Sequence sequence(int depth) {
    Sequence out;
    while (!failed_ && at_ < text_.size()) {
      const char c = text_[at_];
      Element element;
      if (c == '"') {
        element.size = quoted('"');
        if (element.size == 0) element.least = 0;  // "" is nothing
      } else if (c == '[') {
        element.size = quoted(']');
      } else if (c == '.') {
        ++at_;
      } else if (c == '<' || c == '!') {
        at_ = text_.find('>', at_);
        if (at_ == text_.npos) failed_ = true;
        if (!failed_) ++at_;
      } else if (c == '(') {
        ++at_;
        skip(true);
        element.alternatives = alternatives(depth + 1);
        skip(true);
        if (failed_ || at_ >= text_.size() || text_[at_] != ')') failed_ = true;
        ++at_;
      } else {
        element.rule = word();
        if (element.rule.empty()) return out;
      }
      skip(depth > 0);
      repeats(element);
      out.push_back(std::move(element));
      skip(depth > 0);
    }
    return out;
  }

  void repeats(Element& element) {
    if (failed_ || at_ >= text_.size()) return;
    const char c = text_[at_];
    if (c == '?' || c == '*') element.least = 0;
    if (c == '*' || c == '+') element.most = -1;
    if (c == '?' || c == '*' || c == '+') ++at_;
    if (c != '{') return;
    ++at_;
    element.least = number();
    element.most = element.least;
    if (at_ < text_.size() && text_[at_] == ',') {
      ++at_;
      skip(true);
      element.most = at_ < text_.size() && text_[at_] == '}' ? -1 : number();
    }
    skip(true);
    // The compiler counts from one to the other until there is no memory.
    if (element.most >= 0 && element.most < element.least) failed_ = true;
    if (at_ >= text_.size() || text_[at_] != '}') failed_ = true;
    ++at_;
  }

  int number() {
    skip(true);
    int value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      value = std::min(value * 10 + (text_[at_++] - '0'), 1'000'000);
    }
    skip(true);
    return value;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
  bool too_deep_ = false;
  Rules rules_;
};

// Looks at every element once. Groups cannot be nested deeply, chains of rules as long as there are rules.
class GrammarMeasure {
 public:
  explicit GrammarMeasure(const Rules& rules) : rules_(rules) {
    for (const auto& [name, body] : rules_) {
      ways_of(name);
      name_bytes_ = static_cast<double>(name.size());
      expand(body);
    }
  }

  const Ways& worst() const { return worst_; }
  double made_rules() const { return made_rules_; }
  double elements() const { return elements_; }

 private:
  Ways ways_of(const std::string& rule) {
    const auto known = known_.find(rule);
    if (known != known_.end()) return known->second;
    const auto body = rules_.find(rule);
    if (body == rules_.end()) return {};
    known_[rule] = Ways{0, 0, 0, 0};  // a rule that begins with itself is refused by the compiler
    return known_[rule] = ways_of(body->second);
  }

  Ways ways_of(const Alternatives& body) {
    Ways sum{0, 0, 0, 0};
    for (const Sequence& sequence : body) {
      const Ways ways = ways_of(sequence);
      sum.forward = std::min(sum.forward + ways.forward, kCap);
      sum.empty = std::min(sum.empty + ways.empty, kCap);
      sum.skips = std::max(sum.skips, ways.skips);
      sum.cells = std::min(sum.cells + ways.cells, kCap);
    }
    return sum;
  }

  // From its end to its begin, so that what follows a place is known.
  Ways ways_of(const Sequence& sequence) {
    Ways out{0, 1, 0, 0};
    for (auto element = sequence.rbegin(); element != sequence.rend(); ++element) {
      const Ways first = ways_of(*element);
      const bool returns = element != sequence.rbegin() && !element->is_terminal();  // to what follows
      Ways next;
      next.forward = std::min(first.forward + first.empty * out.forward, kCap);
      next.empty = std::min(first.empty * out.empty, kCap);
      next.skips = first.skips + (first.empty > 0 ? out.skips : 0);
      next.cells = std::min(first.cells + (returns ? first.forward : 0) + first.empty * out.cells, kCap);
      out = next;
      worst_.forward = std::max({worst_.forward, out.forward, out.empty});
      worst_.skips = std::max(worst_.skips, out.skips);
      worst_.cells = std::max(worst_.cells, out.cells);
    }
    return out;
  }

  Ways ways_of(const Element& element) {
    Ways ways;
    if (!element.rule.empty()) ways = ways_of(element.rule);
    if (!element.alternatives.empty()) ways = ways_of(element.alternatives);
    if (element.least != 1 || element.most != 1) ways.cells = std::min(ways.cells + 2 * ways.forward, kCap);
    if (ways.empty > 0) {
      const double times = std::max({element.least, element.most, 1});
      ways.forward = std::min(ways.forward * times, kCap);
      ways.cells = std::min(ways.cells * times, kCap);
      ways.skips *= times;
    }
    if (element.least == 0) {
      ways.empty = std::min(ways.empty + 1, kCap);
      ways.skips += 1;
    } else if (element.least > 1 && ways.empty > 0) {
      ways.empty = std::min(std::pow(ways.empty, element.least), kCap);
    }
    return ways;
  }

  // What the compiler makes of it: repetitions are written out, what may be left out and each group are rules.
  void expand(const Alternatives& body) {
    ++elements_;
    for (const Sequence& sequence : body) {
      ++elements_;
      for (const Element& element : sequence) expand(element);
    }
  }

  void expand(const Element& element) {
    if (!element.alternatives.empty()) {
      ++made_rules_;
      elements_ += name_bytes_ / kElementBytes;
      expand(element.alternatives);
    }
    elements_ += element.size * std::max(element.least, 1);
    const double optional = element.most < 0 ? 1 : std::max(element.most - element.least, 0);
    made_rules_ += optional;
    elements_ += optional * (element.size + 3 + name_bytes_ / kElementBytes);
  }

  const Rules& rules_;
  std::unordered_map<std::string, Ways> known_;
  Ways worst_{0, 0, 0, 0};
  double made_rules_ = 0;
  double elements_ = 0;
  double name_bytes_ = 0;  // of the rule that is looked at: the compiler's rules are named after it
};

}  // namespace

Result<void> check_grammar_copies(std::string_view text, std::size_t copies) {
  constexpr double kRuleBytes = 64;  // with what the allocator keeps of them
  GrammarReader reader(text);
  if (copies <= 1 || text.size() > kBytesMax || !reader.read()) return {};  // compiling it says what is wrong
  const GrammarMeasure measure(reader.rules());
  const double rules = measure.made_rules() + static_cast<double>(reader.rules().size());
  const double bytes = measure.elements() * kElementBytes + rules * kRuleBytes;
  if (bytes * static_cast<double>(copies) <= static_cast<double>(kSizeLimit<"grammar_copies_bytes">)) return {};
  return invalid_field("grammar", "grammar is too large for " + std::to_string(copies) +
                                      " answers at once, with repetitions written out; ask for fewer");
}

Result<void> check_grammar_shape(std::string_view text) {
  const auto refuse = [](const std::string& why) { return invalid_field("grammar", "grammar " + why); };
  if (text.size() > kBytesMax) return refuse("may have at most " + std::to_string(kBytesMax) + " bytes");
  if (text.find('\0') != text.npos) return refuse("must not contain zero bytes");
  GrammarReader reader(text);
  const bool read = reader.read();
  if (reader.too_deep()) return refuse("may be nested at most " + std::to_string(kNestingMax) + " levels deep");
  if (!read) {
    const auto parsed = parse_gbnf(text);  // it says where
    return parsed ? refuse("must be valid GBNF with a rule named root") : parsed.error();
  }
  if (reader.rules().size() > kRulesMax) return refuse("may have at most " + std::to_string(kRulesMax) + " rules");
  const GrammarMeasure measure(reader.rules());
  if (measure.made_rules() > kMadeRulesMax || measure.elements() > kElementsMax) {
    return refuse("is too large: with repetitions written out it may have at most " +
                  std::to_string(kSizeLimit<"grammar_made_rules">) + " rules and " +
                  std::to_string(kSizeLimit<"grammar_elements">) + " characters");
  }
  const Ways& worst = measure.worst();
  if (worst.forward > kWaysMax || worst.skips > kSkipsMax || worst.cells > kCellsMax) {
    return refuse(
        "is too ambiguous: at one place there may be at most 4096 ways to the next character, fewer through many "
        "rules, and 256 parts that may be left out one after the other");
  }
  return {};
}

}  // namespace chasqui
