// A regular expression of JSON Schema (ECMA-262 with the flag u), as a nondeterministic automaton over characters. It
// stands for texts in which the expression is found somewhere, so anchors are kept wherever they stand. A constant; any
// thread.
//
// Read are: characters, `.`, classes with ranges, \d \w \s and their opposites, \t \n \r \f \v \0 \cX \xHH \uHHHH
// \u{…}, groups (with or without a name), alternatives, ^ and $, and repetitions (lazy ones are the same). Not
// supported, and named: look-ahead and look-behind, \b and \B, references to groups, \p{…}.
//
// bounded: nesting by `grammar_nesting`, states by kPatternStatesMax, repetitions by `schema_repeats`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/grammar/code_set.h"

namespace chasqui {

class TextPattern {
 public:
  struct Step {
    enum class Kind : std::uint8_t { nothing, at_begin, at_end, character };
    Kind kind = Kind::nothing;
    std::uint32_t to = 0;
    std::uint32_t set = 0;  // character: index into sets()
  };
  using States = std::vector<std::uint32_t>;  // sorted

  struct Fault {
    std::string why;
    bool unsupported = false;  // a regular expression all the same
  };
  static std::optional<TextPattern> read(std::string_view pattern, Fault& fault);
  // Exactly one of these texts.
  static TextPattern one_of(const std::vector<std::string_view>& texts);

  const std::vector<CodeSet>& sets() const { return sets_; }
  // Before the first character.
  States begin() const { return closure({0}, true, false); }
  // Of states of step(): what they lead to with a character of sets whose `has` is true.
  template <class Has>
  States after(const States& states, const Has& has) const {
    States out;
    for (const std::uint32_t state : states) {
      for (const Step& step : steps_[state]) {
        if (step.kind == Step::Kind::character && has(step.set)) out.push_back(step.to);
      }
    }
    return closure(std::move(out), false, false);
  }
  // The text may end here. `first`: nothing has come.
  bool accepts(const States& states, bool first) const;
  // Every text that goes on from here is accepted.
  bool accepts_all(const States& states) const { return states.size() == 1 && states.front() == kFound; }
  bool matches(std::string_view text) const;
  std::size_t states() const { return steps_.size(); }

 private:
  friend class TextPatternReader;
  static constexpr std::uint32_t kFound = 1;  // behind the expression; 0: before it

  States closure(States states, bool first, bool last) const;
  std::uint32_t add_state();
  std::uint32_t add_set(CodeSet set);

  std::vector<std::vector<Step>> steps_;
  std::vector<CodeSet> sets_;
  std::map<std::u32string, std::uint32_t> numbers_;  // of sets, by their ranges
};

}  // namespace chasqui
