// Where one answer is in its grammar. A small value: a copy of it is an older state to come back to, and any thread can
// carry it on with its own GrammarMasks.
#pragma once

#include <list>

#include "model/grammar/grammar_masks.h"

namespace chasqui {

class GrammarMatcher {
 public:
  GrammarMatcher() = default;
  explicit GrammarMatcher(GrammarProgramPtr program) : program_(std::move(program)) {}

  bool present() const { return program_ != nullptr; }
  const GrammarProgramPtr& program() const { return program_; }

  // REQUIRES, for all of them: present(), and masks of the same program
  bool allows(Token token, GrammarMasks& masks) { return masks.allows(state(masks), token); }
  const TokenMask& mask(GrammarMasks& masks) { return masks.mask(state(masks)); }
  const TokenMask& mask(GrammarMasks& masks, std::uint64_t& work) { return masks.mask(state(masks), work); }
  // False, and no change, where the token, or the text, may not come.
  bool accept(Token token, GrammarMasks& masks);
  bool accept_text(std::string_view text, GrammarMasks& masks);
  // In these masks.
  GrammarMasks::Id state(GrammarMasks& masks);
  bool is_complete(GrammarMasks& masks) { return masks.states().is_complete(state(masks)); }

 private:
  bool move_to(GrammarMasks::Id to, GrammarMasks& masks);

  GrammarProgramPtr program_;
  GrammarConfigurationPtr at_;  // null: at the start
  GrammarMasks::Id id_ = 0;     // of at_, in the masks that were used last
};

// The masks of the programs that a thread has used last. One thread.
//
// bounded: kPrograms programs, `grammar_states_bytes` in all; what was used longest ago is forgotten first.
class GrammarMaskPool {
 public:
  // Valid until the next call.
  GrammarMasks& of(const GrammarProgramPtr& program);

  GrammarMaskCost cost() const;
  std::uint64_t work() const;

 private:
  static constexpr std::size_t kPrograms = 32;

  std::size_t bytes() const;
  void drop_last();

  std::list<GrammarMasks> masks_;  // the one that was used last is first
  GrammarMaskCost cost_;           // of those that are gone
  std::uint64_t work_ = 0;
};

}  // namespace chasqui
