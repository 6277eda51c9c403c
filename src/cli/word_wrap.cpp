#include "cli/word_wrap.h"

#include <utility>

namespace chasqui::cli {

std::string WordWrap::feed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      end_line(out);
      continue;
    }
    if (colour_ || c == '\x1b') {
      colour_ = c != 'm';
      (verbatim_ ? out : word_) += c;
      continue;
    }
    if (head_.size() < 3) head_ += c;
    if (verbatim_) {
      out += c;
    } else if (c == ' ') {
      end_word(out);
      ++spaces_;
    } else {
      const bool begins = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      if (begins && width_ >= columns_) end_word(out);
      word_ += c;
      width_ += begins ? 1 : 0;
    }
  }
  return out;
}

std::string WordWrap::end() {
  std::string out;
  end_word(out);
  return out;
}

void WordWrap::end_word(std::string& out) {
  if (word_.empty()) return;
  if (column_ > 0 && column_ + spaces_ + width_ > columns_) {
    out += '\n';
    column_ = spaces_ = 0;
  }
  out.append(spaces_, ' ');
  out += word_;
  column_ += std::exchange(spaces_, 0) + std::exchange(width_, 0);
  word_.clear();
}

void WordWrap::end_line(std::string& out) {
  end_word(out);
  out += '\n';
  if (head_ == "```") verbatim_ = !verbatim_;
  head_.clear();
  column_ = spaces_ = 0;
}

}  // namespace chasqui::cli
