// A grammar as a pushdown automaton over bytes: for each rule a finite automaton whose steps are bytes, calls of rules
// and, where the grammar names them, whole tokens. Made of GBNF in the offload pool; constant afterwards, any thread.
//
// Holds: no rule calls itself before it has taken a byte or a token; a rule that may match nothing is stepped over by
// those who call it (so a call takes at least one byte); every position can reach the end of its rule.
//
// bounded: positions and steps by `grammar_automaton_steps`, the work of compiling by `grammar_compile_work`.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/types.h"
#include "model/grammar/gbnf.h"

namespace chasqui {

class GrammarAutomaton {
 public:
  // Bytes that no position tells apart are one class.
  struct ByteStep {
    std::uint8_t low = 0;  // classes, both included
    std::uint8_t high = 0;
    std::uint32_t to = 0;
  };
  struct Call {
    std::uint32_t rule = 0;
    std::uint32_t to = 0;  // where it returns to
  };
  struct TokenStep {
    Token token = 0;
    bool inverse = false;
    std::uint32_t to = 0;
  };
  struct Rule {
    std::string name;
    std::uint32_t start = 0;
    std::uint32_t order = 0;  // a rule comes before those that it may call first
  };

  static constexpr std::uint32_t kEnd = 0;  // the position behind the whole text

  // Errors name `grammar`, and in the text the rule.
  static Result<GrammarAutomaton> compile(const Gbnf& grammar);

  std::span<const ByteStep> byte_steps(std::uint32_t position) const { return part(byte_steps_, position, 0); }
  std::span<const Call> calls(std::uint32_t position) const { return part(calls_, position, 1); }
  std::span<const TokenStep> token_steps(std::uint32_t position) const { return part(token_steps_, position, 2); }
  // The rule may end here.
  bool is_final(std::uint32_t position) const { return positions_[position].final; }
  // … and can do nothing else.
  bool only_ends(std::uint32_t position) const { return positions_[position].only_ends; }
  // No byte leads to several positions.
  bool has_one_way(std::uint32_t position) const { return positions_[position].one_way; }

  const Rule& rule(std::uint32_t index) const { return rules_[index]; }
  std::uint32_t root() const { return root_; }
  std::size_t positions() const { return positions_.size() - 1; }
  std::uint32_t byte_classes() const { return byte_class_count_; }
  std::uint8_t byte_class(std::uint8_t byte) const { return byte_class_[byte]; }
  bool names_tokens() const { return !token_steps_.empty(); }
  std::size_t bytes() const;

 private:
  friend class AutomatonBuilder;

  struct Position {
    std::array<std::uint32_t, 3> begin{};  // of byte steps, calls, token steps; their end is the next one's begin
    bool final = false;
    bool only_ends = false;
    bool one_way = true;
  };

  template <class T>
  std::span<const T> part(const std::vector<T>& steps, std::uint32_t position, std::size_t kind) const {
    const std::uint32_t begin = positions_[position].begin[kind];
    return {steps.data() + begin, positions_[position + 1].begin[kind] - begin};
  }

  std::vector<Position> positions_;  // and one behind the last
  std::vector<ByteStep> byte_steps_;
  std::vector<Call> calls_;
  std::vector<TokenStep> token_steps_;
  std::vector<Rule> rules_;
  std::uint32_t root_ = 0;
  std::array<std::uint8_t, 256> byte_class_{};
  std::uint32_t byte_class_count_ = 1;
};

}  // namespace chasqui
