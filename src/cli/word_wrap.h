// Breaks lines of a streamed answer between words, where a terminal would break them inside. A word is held back until
// it is known to fit; lines of fenced code are left as they are. Text goes in in pieces of any size, free of control
// characters (cli/terminal) but colours, which take no room. One for each answer; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace chasqui::cli {

class WordWrap {
 public:
  explicit WordWrap(std::size_t columns) : columns_(columns) {}

  // What can be written now.
  std::string feed(std::string_view text);
  // The last word. Feeding may go on.
  std::string end();

 private:
  void end_word(std::string& out);
  void end_line(std::string& out);

  const std::size_t columns_;
  std::string word_;        // held back, shorter than a line
  std::size_t width_ = 0;   // its columns: each character counts as one
  std::size_t spaces_ = 0;  // before it, not written yet
  std::size_t column_ = 0;  // what is written of the line
  std::string head_;        // the first three characters of the line
  bool verbatim_ = false;   // inside a fence
  bool colour_ = false;     // inside "ESC [ … m"
};

}  // namespace chasqui::cli
