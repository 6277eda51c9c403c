// Cuts a text before special tokens, so that no piece holds many of them: libllama's search for special tokens takes
// time that grows with the square of how many it finds (0.1 MB of nothing but <|im_end|> took half a second, 1 MB
// took 37). A special token is a border for the tokenizer anyway, so the pieces' tokens, one after the other, are the
// text's. And, where it is told to, within texts of one piece: libllama finds words by regular expressions, which
// recurse with each of a word's characters (400,000 letters took the 64 MiB of a stack with those of GPT-4o). Such a
// cut changes the tokens beside it. Built once; then const and thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/limits.h"

namespace chasqui {

class SpecialCutter {
 public:
  // Pieces hold at most about this many special tokens.
  static constexpr std::size_t kSpecialsPerPiece = 256;

  // Longest piece without white space, or of nothing but white space and punctuation; 16 MiB of stack at most.
  static constexpr std::size_t kRunBytes = kSizeLimit<"word_bytes">;

  // `cuts`: a text may be cut before it. All special tokens must be known, since one may overlap another.
  void add(std::string_view special, bool cuts);

  void cut_runs() { cuts_runs_ = true; }

  // Where the first piece of `text` ends: at the start of a special token, within a run, or at the end of the text.
  std::size_t next_cut(std::string_view text) const;

 private:
  // Length of the longest special token at the start of `text`; 0 when there is none.
  std::size_t special_at(std::string_view text) const;
  bool overlapped(std::string_view text, std::size_t position) const;

  std::unordered_set<std::string> specials_;
  std::unordered_set<std::string> cuts_;
  std::set<std::size_t, std::greater<>> lengths_;
  std::array<bool, 256> starts_{};
  bool cuts_runs_ = false;
};

}  // namespace chasqui
