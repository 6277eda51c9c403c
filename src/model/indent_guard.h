// Ends an answer at the first line, after its first, that is indented by fewer than so many spaces and tabs: what
// completions of one block of code ask for. An empty line counts as such a line, as in llama-server. Each byte is
// looked at once. Owned by the sequence's runner entry; one thread at a time.
#pragma once

#include <cstdint>
#include <string>

namespace chasqui {

class IndentGuard {
 public:
  // 0: every line passes.
  explicit IndentGuard(std::int32_t indent_min) : indent_min_(indent_min) {}

  // What comes next in the answer; false: the answer ends here. Then `text` is cut where the line's first character
  // stood that is no indentation, and all that follows is cut as a whole.
  bool pass(std::string& text) {
    if (indent_min_ <= 0) return true;
    if (ended_) text.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char byte = text[i];
      const bool space = byte == ' ' || byte == '\t';
      if (inside_ && !space) {
        ended_ = indent_ < indent_min_;
        if (ended_) text.resize(i);
        inside_ = false;
      } else if (inside_) {
        ++indent_;
      }
      if (byte == '\n' && !ended_) {
        inside_ = true;
        indent_ = 0;
      }
    }
    return !ended_;
  }

 private:
  const std::int32_t indent_min_;
  std::int32_t indent_ = 0;  // of this line so far
  bool inside_ = false;      // at the beginning of a line that is not the first
  bool ended_ = false;
};

}  // namespace chasqui
