// The rules of a grammar as nondeterministic automata, with steps that take nothing (Thompson's construction), and what
// is found out about rules before these steps are removed: which match nothing, which match no text at all, which begin
// with themselves. A stage of GrammarAutomaton::compile(), on its stack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/grammar/gbnf.h"
#include "model/grammar/utf8_ranges.h"

namespace chasqui {

// What compiling has cost so far, in steps looked at.
struct CompileWork {
  std::uint64_t done = 0;
  bool count(std::uint64_t steps);  // false: it is too much
};

struct RuleStep {
  enum class Kind : std::uint8_t { nothing, byte, call, token, other_token };
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  Kind kind = Kind::nothing;
  std::uint8_t low = 0;  // byte
  std::uint8_t high = 0;
  std::uint32_t to = 0;
  std::uint32_t value = 0;     // the rule or the token
  std::uint32_t next = kNone;  // of the same state
};

struct RuleStates {
  std::vector<RuleStep> steps;
  std::vector<std::uint32_t> first;  // of each state; state 0 is the start
  std::uint32_t end = 0;
  std::vector<bool> useful;  // states from which the end can be reached; empty: all
  bool may_be_empty = false;
  bool matches_something = false;  // some text, be it an empty one

  std::uint32_t add_state() {
    first.push_back(RuleStep::kNone);
    return static_cast<std::uint32_t>(first.size() - 1);
  }
  void add(std::uint32_t from, RuleStep step) {
    step.next = first[from];
    first[from] = static_cast<std::uint32_t>(steps.size());
    steps.push_back(step);
  }
};

class RuleAnalysis {
 public:
  RuleAnalysis(const Gbnf& grammar, CompileWork& work) : grammar_(grammar), work_(work) {}

  // Errors name `grammar`.
  Result<void> run();

  std::vector<RuleStates>& rules() { return rules_; }
  const std::vector<std::uint32_t>& order() const { return order_; }

 private:
  std::uint32_t build(RuleStates& rule, const GbnfPart& part, std::uint32_t from);
  std::uint32_t build_characters(RuleStates& rule, const GbnfPart& part, std::uint32_t from);
  std::uint32_t build_repeat(RuleStates& rule, const GbnfPart& part, std::uint32_t from);
  bool settle_rules();
  bool look_at(std::uint32_t rule);
  void mark_useful(RuleStates& rule);
  void step_over_empty_rules(RuleStates& rule);
  Result<void> order_rules();
  std::vector<std::uint32_t> called_first(const RuleStates& rule);

  const Gbnf& grammar_;
  CompileWork& work_;
  bool too_large_ = false;
  std::uint64_t made_ = 0;  // steps
  std::vector<RuleStates> rules_;
  std::vector<std::uint32_t> order_;
};

}  // namespace chasqui
