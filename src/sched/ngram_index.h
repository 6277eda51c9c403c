// Where the last few tokens of a sequence stood before: text that repeats itself (code that is edited, quotes, tables,
// names) is drafted from what followed there. Owned by Drafts, one for each sequence that decodes; pure.
//
// An n-gram is so many tokens as the index is made for. For each the place behind its newest occurrence is kept, in a
// table that is found by hash and forgets what collides; a find compares the tokens themselves, so that a collision is
// never a wrong place.
#pragma once

#include <cstdint>
#include <vector>

#include "core/sequence.h"

namespace chasqui {

class NgramIndex {
 public:
  static constexpr TokenCount kNgram = 3;  // tokens that are few enough to be found again, and say what follows

  explicit NgramIndex(TokenCount size = kNgram) : size_(size), noted_(size - 1) {}

  // Takes in what `sequence` has grown by. REQUIRES: always the same sequence
  void follow(const Sequence& sequence);

  // At most `most` tokens that followed when the last tokens were there before, in place of what `out` held;
  // none when they were not. What repeats itself up to the end goes on in the draft token.
  // REQUIRES: follow(sequence) was called with it as it is now.
  void draft(const Sequence& sequence, TokenCount most, std::vector<Token>& out) const;

 private:
  std::uint64_t hash_of(const Sequence& sequence, TokenCount end) const;
  bool same(const Sequence& sequence, TokenCount end, TokenCount other) const;
  void make_room(const Sequence& sequence);
  void note(const Sequence& sequence, TokenCount end) { places_[hash_of(sequence, end) & (places_.size() - 1)] = end; }

  TokenCount size_;
  // By hash, a power of two of them: where an n-gram ends, which is the position of the token that followed; 0: none.
  std::vector<TokenCount> places_;
  TokenCount noted_;  // the n-grams that end here or before are in the table
};

}  // namespace chasqui
