// Texts of a prompt that stand elsewhere in what a slot holds: where something before them is gone, they can be moved
// up (Model::shift) instead of being computed again, for requests that ask for it (`n_cache_reuse`). What is moved was
// computed beside what is gone, so it is not what the prompt would have. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/types.h"

namespace chasqui {

struct MovedText {
  // Positions from … to-1 that are to be forgotten, one after the other: each counts without those before it.
  struct Gap {
    TokenCount from = 0;
    TokenCount to = 0;
  };
  TokenCount length = 0;  // tokens of the prompt that the slot then holds
  TokenCount clean = 0;   // … of which nothing was moved
  TokenCount end = 0;     // of what the slot held before, no more is needed
  std::vector<Gap> gaps;
};

// As llama-server looks for them: behind the common prefix, each text of `chunk` or more tokens, in their order.
// Compares at most `budget` tokens, and takes them off it. REQUIRES: chunk > 0
MovedText find_moved_text(std::span<const Token> held, std::span<const Token> prompt, TokenCount chunk,
                          std::size_t& budget);

}  // namespace chasqui
