// One pattern of a lazy grammar, compiled twice: to an automaton over bytes that reads an answer once, and to the
// regular expression that decides where the automaton has seen what may be a match. The automaton takes look-ahead for
// granted, so it sees every match and some that are none. A pattern that it cannot express is not `scannable`; those
// need the whole answer each time. Constant; any thread.
#pragma once

#include <bitset>
#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui {

class TriggerPattern {
 public:
  using State = std::uint32_t;
  using Bytes = std::bitset<256>;

  struct Node {
    enum class Kind : std::uint8_t { bytes, both, text_begin, text_end, match };
    Kind kind = Kind::match;
    State next = 0;
    State other = 0;  // with `both`
    Bytes bytes;      // with `bytes`
  };

  // ECMAScript, as llama.cpp writes them. Throws std::regex_error.
  explicit TriggerPattern(const std::string& text);

  bool scannable() const { return !nodes_.empty(); }
  const std::vector<Node>& nodes() const { return nodes_; }
  State begin() const { return begin_; }
  // What a match that begins behind the first byte of the answer can begin with.
  const Bytes& first() const { return first_; }

  // Where the first match begins: its first group that is not empty, or all of it. npos: nowhere. `from` says whether
  // `text` begins the answer.
  enum class From : std::uint8_t { answer_begin, within };
  std::size_t find(const std::string& text, From from) const;

 private:
  void find_first();

  std::regex regex_;
  bool whole_ = false;  // anchored at both ends: a match of all of the text is tried before any other
  std::vector<Node> nodes_;
  State begin_ = 0;
  Bytes first_;
};

}  // namespace chasqui
