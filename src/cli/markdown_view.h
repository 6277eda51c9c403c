// Markdown of a streamed answer as a terminal shows it: headings and **bold** are bold, `code` and fenced code have a
// colour, items begin with a dot. What has been shown is never shown anew: text is held back only from an opening mark
// to its closing one, or to the end of the line, where a mark that none closes stays as it is. Text goes in in pieces
// of any size, free of control characters (cli/terminal). One for each answer; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/terminal.h"

namespace chasqui::cli {

class MarkdownView {
 public:
  explicit MarkdownView(const Paint& paint) : paint_(paint) {}

  // What can be written now, with colours.
  std::string feed(std::string_view text);
  // What was held back. The answer has ended.
  std::string end();

 private:
  static constexpr std::size_t kHeldMax = 400;  // bytes

  void take(std::string& out, char c);
  void take_head(std::string& out, char c);
  void take_inline(std::string& out, char c);
  void begin_line(std::string& out);
  void end_line(std::string& out);
  void begin_span(std::string& out, char c);
  bool may_close() const;
  void close(std::string& out);
  void give_up(std::string& out);
  void plain(std::string& out, char c);

  const Paint paint_;
  std::string head_;  // the beginning of a line, until it is clear what the line is
  bool in_head_ = true;
  bool fenced_ = false;     // inside a block of code
  bool verbatim_ = false;   // of this line: no marks
  std::string line_style_;  // of the whole line
  std::string held_;        // from an opening mark
  std::size_t mark_ = 0;    // its length, once the character behind it has come
  char before_ = ' ';       // what was written last of the line
};

}  // namespace chasqui::cli
