#include "model/special_cutter.h"

#include <algorithm>

#include "base/ascii.h"

namespace chasqui {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// What may be one word to a regular expression: without white space, or without a letter, digit or other sign.
class Cutting {
 public:
  bool is_long() const { return unspaced_ >= SpecialCutter::kRunBytes || wordless_ >= SpecialCutter::kRunBytes; }
  void take(char c) {
    unspaced_ = c == ' ' || (c >= '\t' && c <= '\r') ? 0 : unspaced_ + 1;
    wordless_ = is_ascii_word_or("", c) || static_cast<unsigned char>(c) >= 0x80 ? 0 : wordless_ + 1;
  }

 private:
  std::size_t unspaced_ = 0;
  std::size_t wordless_ = 0;
};

}  // namespace

void SpecialCutter::add(std::string_view special, bool cuts) {
  if (special.empty()) return;
  specials_.emplace(special);
  if (cuts) cuts_.emplace(special);
  lengths_.insert(special.size());
  starts_[static_cast<unsigned char>(special.front())] = true;
}

std::size_t SpecialCutter::next_cut(std::string_view text) const {
  std::size_t seen = 0;
  std::size_t i = 0;
  Cutting run;
  while (i < text.size()) {
    const std::size_t length = special_at(text.substr(i));
    if (length == 0) {
      if (cuts_runs_ && run.is_long() && !continues_character(text[i]) && !overlapped(text, i)) return i;
      run.take(text[i++]);
      continue;
    }
    run = {};
    if (seen >= kSpecialsPerPiece && cuts_.contains(std::string(text.substr(i, length))) && !overlapped(text, i)) {
      return i;
    }
    ++seen;
    i += length;
  }
  return text.size();
}

std::size_t SpecialCutter::special_at(std::string_view text) const {
  if (!starts_[static_cast<unsigned char>(text.front())]) return 0;
  std::string candidate;
  for (const std::size_t length : lengths_) {
    if (length > text.size()) continue;
    candidate = text.substr(0, length);
    if (specials_.contains(candidate)) return length;
  }
  return 0;
}

// Whether a special token that starts earlier reaches over `position`: libllama takes the longest ones first, and
// would not see the border that we see.
bool SpecialCutter::overlapped(std::string_view text, std::size_t position) const {
  const std::size_t longest = lengths_.empty() ? 0 : *lengths_.begin();
  const std::size_t first = position - std::min(position, longest);
  for (std::size_t i = first; i < position; ++i) {
    if (i + special_at(text.substr(i)) > position) return true;
  }
  return false;
}

}  // namespace chasqui
