#include "model/grammar/grammar_matcher.h"

#include "base/limits.h"

namespace chasqui {

// A configuration that both hold is the same, whatever the masks have forgotten since.
GrammarMasks::Id GrammarMatcher::state(GrammarMasks& masks) {
  GrammarStates& states = masks.states();
  if (at_ == nullptr) {
    id_ = states.start();
  } else if (id_ >= states.count() || states.configuration(id_) != at_) {
    id_ = states.adopt(*at_);
  } else {
    return id_;
  }
  at_ = states.configuration(id_);
  return id_;
}

bool GrammarMatcher::accept(Token token, GrammarMasks& masks) {
  const GrammarMasks::Id from = state(masks);
  if (program_->tokens->is_end(token)) return masks.states().is_complete(from);
  return move_to(masks.after(from, token), masks);
}

bool GrammarMatcher::accept_text(std::string_view text, GrammarMasks& masks) {
  return move_to(masks.states().after_bytes(state(masks), text), masks);
}

bool GrammarMatcher::move_to(GrammarMasks::Id to, GrammarMasks& masks) {
  GrammarStates& states = masks.states();
  const GrammarConfiguration& configuration = *states.configuration(to);
  if (configuration.places.empty() && !configuration.complete) return false;
  id_ = to;
  at_ = states.configuration(to);
  return true;
}

GrammarMasks& GrammarMaskPool::of(const GrammarProgramPtr& program) {
  auto found = masks_.begin();
  while (found != masks_.end() && found->program() != program) ++found;
  if (found == masks_.end()) {
    masks_.emplace_front(program);
  } else if (found != masks_.begin()) {
    masks_.splice(masks_.begin(), masks_, found);
  }
  while (masks_.size() > kPrograms) drop_last();
  while (bytes() > kSizeLimit<"grammar_states_bytes"> && masks_.size() > 1) drop_last();
  if (masks_.front().bytes() > kSizeLimit<"grammar_states_bytes">) masks_.front().forget();
  return masks_.front();
}

void GrammarMaskPool::drop_last() {
  cost_ += masks_.back().cost();
  work_ += masks_.back().work();
  masks_.pop_back();
}

std::size_t GrammarMaskPool::bytes() const {
  std::size_t sum = 0;
  for (const GrammarMasks& masks : masks_) sum += masks.bytes() + masks.program()->automaton->bytes();
  return sum;
}

GrammarMaskCost GrammarMaskPool::cost() const {
  GrammarMaskCost sum = cost_;
  for (const GrammarMasks& masks : masks_) sum += masks.cost();
  return sum;
}

std::uint64_t GrammarMaskPool::work() const {
  std::uint64_t sum = work_;
  for (const GrammarMasks& masks : masks_) sum += masks.work();
  return sum;
}

}  // namespace chasqui
