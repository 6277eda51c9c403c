#include "model/trigger_pattern.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace chasqui {
namespace {

using Bytes = TriggerPattern::Bytes;
using Node = TriggerPattern::Node;
using State = TriggerPattern::State;

constexpr std::size_t kTriggerNodesMax = 2000;
constexpr int kTriggerNestingMax = 32;

struct Tree {
  enum class Kind : std::uint8_t { bytes, sequence, choice, repeat, text_begin, text_end };
  Kind kind = Kind::sequence;
  Bytes bytes;
  std::vector<Tree> parts;
  int least = 0;  // of `repeat`; there is no other upper bound than one
  bool once_at_most = false;
};

// Reads the part of ECMAScript's patterns that is regular. Everything else is std::nullopt.
class TriggerReader {
 public:
  explicit TriggerReader(std::string_view text) : text_(text) {}

  std::optional<Tree> read() {
    auto tree = choice();
    if (at_ < text_.size()) return std::nullopt;
    return tree;
  }

 private:
  bool take(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }

  std::optional<Tree> choice() {
    if (++depth_ > kTriggerNestingMax) return std::nullopt;
    Tree out;
    out.kind = Tree::Kind::choice;
    do {
      auto part = sequence();
      if (!part) return std::nullopt;
      out.parts.push_back(std::move(*part));
    } while (take("|"));
    --depth_;
    return out;
  }

  std::optional<Tree> sequence() {
    Tree out;
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      auto part = repeated();
      if (!part) return std::nullopt;
      out.parts.push_back(std::move(*part));
    }
    return out;
  }

  std::optional<Tree> repeated() {
    auto part = atom();
    if (!part || at_ == text_.size()) return part;
    const char sign = text_[at_];
    if (sign == '{') return std::nullopt;
    if (sign != '*' && sign != '+' && sign != '?') return part;
    ++at_;
    take("?");  // which of several matches is taken is not the automaton's business
    Tree out;
    out.kind = Tree::Kind::repeat;
    out.least = sign == '+' ? 1 : 0;
    out.once_at_most = sign == '?';
    out.parts.push_back(std::move(*part));
    return out;
  }

  std::optional<Tree> atom() {
    if (take("(?!")) return ahead();
    if (take("(?=")) return std::nullopt;
    if (take("(?:") || take("(")) {
      auto inner = choice();
      if (!inner || !take(")")) return std::nullopt;
      return inner;
    }
    Tree out;
    const char c = text_[at_++];
    if (c == '^' || c == '$') {
      out.kind = c == '^' ? Tree::Kind::text_begin : Tree::Kind::text_end;
      return out;
    }
    if (c == ')' || c == '*' || c == '+' || c == '?' || c == '{') return std::nullopt;
    out.kind = Tree::Kind::bytes;
    const auto bytes = c == '[' ? set() : c == '.' ? any() : c == '\\' ? escaped() : one(c);
    if (!bytes) return std::nullopt;
    out.bytes = *bytes;
    return out;
  }

  // What must not follow is read, and takes no part. With an end of the text in it more text could make a match.
  std::optional<Tree> ahead() {
    const std::size_t begin = at_;
    const auto inner = choice();
    if (!inner || text_.substr(begin, at_ - begin).find('$') != std::string_view::npos || !take(")"))
      return std::nullopt;
    return Tree();
  }

  static std::optional<Bytes> one(char c) { return Bytes().set(static_cast<unsigned char>(c)); }
  static std::optional<Bytes> any() { return ~Bytes().set('\n').set('\r'); }

  std::optional<Bytes> escaped() {
    if (at_ == text_.size()) return std::nullopt;
    const char c = text_[at_++];
    Bytes out;
    switch (c) {
      case 's':
      case 'S':
        for (const char space : std::string_view(" \t\n\v\f\r")) out.set(static_cast<unsigned char>(space));
        return c == 's' ? out : ~out;
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 't': return one('\t');
      default: break;
    }
    const bool sign =
        c > ' ' && c < 0x7F && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z');
    return sign ? one(c) : std::nullopt;
  }

  std::optional<Bytes> set() {
    const bool other = take("^");
    Bytes out;
    while (at_ < text_.size() && text_[at_] != ']') {
      const char c = text_[at_++];
      const auto bytes = c == '\\' ? escaped() : one(c);
      if (c == '[' || !bytes) return std::nullopt;
      out |= *bytes;
      if (at_ + 1 >= text_.size() || text_[at_] != '-' || text_[at_ + 1] == ']') continue;
      const char last = text_[at_ + 1];
      if (c == '\\' || last == '\\' || last < c || c < 0) return std::nullopt;
      for (int i = c; i <= last; ++i) out.set(static_cast<std::size_t>(i));
      at_ += 2;
    }
    if (!take("]")) return std::nullopt;
    return other ? ~out : out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// The state from which `tree` and then `next` is read.
State add_tree(const Tree& tree, State next, std::vector<Node>& nodes) {
  const auto add = [&nodes](Node node) {
    nodes.push_back(node);
    return static_cast<State>(nodes.size() - 1);
  };
  switch (tree.kind) {
    case Tree::Kind::bytes: return add({Node::Kind::bytes, next, 0, tree.bytes});
    case Tree::Kind::text_begin: return add({Node::Kind::text_begin, next, 0, {}});
    case Tree::Kind::text_end: return add({Node::Kind::text_end, next, 0, {}});
    case Tree::Kind::sequence:
      for (std::size_t i = tree.parts.size(); i-- > 0;) next = add_tree(tree.parts[i], next, nodes);
      return next;
    case Tree::Kind::choice: {
      State out = add_tree(tree.parts[0], next, nodes);
      for (std::size_t i = 1; i < tree.parts.size(); ++i) {
        const State part = add_tree(tree.parts[i], next, nodes);
        out = add({Node::Kind::both, out, part, {}});
      }
      return out;
    }
    case Tree::Kind::repeat: break;
  }
  if (tree.once_at_most) {
    const State part = add_tree(tree.parts[0], next, nodes);
    return add({Node::Kind::both, part, next, {}});
  }
  const State again = add({Node::Kind::both, 0, next, {}});
  const State part = add_tree(tree.parts[0], again, nodes);
  nodes[again].next = part;
  return tree.least == 0 ? again : part;
}

std::size_t begin_of(const std::smatch& match) {
  for (std::size_t i = 1; i < match.size(); ++i) {
    if (match.length(i) > 0) return static_cast<std::size_t>(match.position(i));
  }
  return static_cast<std::size_t>(match.position(0));
}

}  // namespace

TriggerPattern::TriggerPattern(const std::string& text)
    : regex_(text), whole_(!text.empty() && text.front() == '^' && text.back() == '$') {
  const auto tree = TriggerReader(text).read();
  if (!tree) return;
  nodes_.push_back({Node::Kind::match, 0, 0, {}});
  begin_ = add_tree(*tree, 0, nodes_);
  if (nodes_.size() > kTriggerNodesMax) nodes_.clear();
  if (scannable()) find_first();
}

// A pattern that an empty text matches is not one to look for.
void TriggerPattern::find_first() {
  std::vector<bool> seen(nodes_.size());
  std::vector<State> todo{begin_};
  bool empty = false;
  while (!todo.empty()) {
    const State state = todo.back();
    todo.pop_back();
    if (seen[state]) continue;
    seen[state] = true;
    const Node& node = nodes_[state];
    empty = empty || node.kind == Node::Kind::match;
    if (node.kind == Node::Kind::bytes) {
      first_ |= node.bytes;
    } else if (node.kind != Node::Kind::match) {
      todo.push_back(node.next);
      if (node.kind == Node::Kind::both) todo.push_back(node.other);
    }
  }
  if (empty) nodes_.clear();
}

std::size_t TriggerPattern::find(const std::string& text, From from) const {
  std::smatch match;
  if (from == From::answer_begin && whole_ && std::regex_match(text, match, regex_)) return begin_of(match);
  const auto flags = from == From::within ? std::regex_constants::match_not_bol : std::regex_constants::match_default;
  return std::regex_search(text, match, regex_, flags) ? begin_of(match) : std::string::npos;
}

}  // namespace chasqui
