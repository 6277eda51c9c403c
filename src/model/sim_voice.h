// What a simulated model says next, and when it stands still for a while. Const and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "core/types.h"

namespace chasqui {

// What a slot holds. Views live for one call.
struct SimHistory {
  std::span<const Token> tokens;  // not empty
  std::uint64_t hash = 0;         // of all of them, and of the adapters
  std::size_t prompt = 0;         // tokens that were there when the first one was asked for
};

class SimVoice {
 public:
  struct Next {
    Token chosen = 0;
    Token runner_up = 0;  // takes its place where that is banned
  };

  virtual ~SimVoice() = default;
  virtual Next next(const SimHistory& history) const = 0;
  // How much longer the step takes that asks for the next token.
  virtual Duration hang(const SimHistory&) const { return Duration::zero(); }
};

}  // namespace chasqui
