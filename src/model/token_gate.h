// What says which tokens may come next, where our own code does. One sequence; one thread at a time, not always the
// same one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/types.h"
#include "model/grammar/grammar_masks.h"

namespace chasqui {

class TokenGate {
 public:
  virtual ~TokenGate() = default;

  virtual bool allows(Token token) = 0;
  // False where the token, or what it completes, does not fit: the gate is of no use any more.
  virtual bool accept(Token token) = 0;
  // All that may come; null where that is any token. Not whole where to find it takes more than about so much work, as
  // GrammarMasks counts it, of which what it took is taken off: the next call goes on. Valid until the next call, of
  // any gate of the thread.
  virtual const TokenMask* mask(std::uint64_t& work) = 0;
  // What must come next, whatever is drawn, in the tokens that the tokenizer would have made of it behind `last`, which
  // was just accepted. Valid until the next call, of any gate of the thread.
  virtual std::span<const Token> forced(Token last) = 0;
  virtual std::unique_ptr<TokenGate> copy() const = 0;
};

}  // namespace chasqui
