// What a user types at the prompt of `chasqui chat`: a question, possibly of several lines, or a command. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chasqui::cli {

// Joins lines: one that ends with a backslash goes on in the next, and everything between two lines of """ is one text.
class LineJoiner {
 public:
  // A whole input, or nothing while more lines belong to it.
  std::optional<std::string> take(std::string_view line);
  bool wants_more() const { return block_ || !kept_.empty(); }
  void drop();

 private:
  std::string kept_;
  bool block_ = false;
};

struct ChatInput {
  enum class Kind { nothing, text, system, save, load, stats, help, clear, quit, mistake };
  Kind kind = Kind::nothing;
  std::string text;  // of the question, what follows a command, or what is wrong
};

ChatInput read_input(std::string_view input);

// For completion with Tab.
std::vector<std::string> commands_that_begin_with(std::string_view beginning);
std::string_view chat_help();

}  // namespace chasqui::cli
