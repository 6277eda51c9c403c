#include "cli/chat_input.h"

#include <algorithm>
#include <array>
#include <utility>

namespace chasqui::cli {
namespace {

using Kind = ChatInput::Kind;

struct Command {
  std::string_view name;
  Kind kind;
  enum class Argument { none, open, needed } argument;
};

constexpr std::array<Command, 8> kCommands = {{
    {"/system", Kind::system, Command::Argument::open},
    {"/save", Kind::save, Command::Argument::needed},
    {"/load", Kind::load, Command::Argument::needed},
    {"/stats", Kind::stats, Command::Argument::none},
    {"/clear", Kind::clear, Command::Argument::none},
    {"/help", Kind::help, Command::Argument::none},
    {"/quit", Kind::quit, Command::Argument::none},
    {"/exit", Kind::quit, Command::Argument::none},
}};

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

std::optional<std::string> LineJoiner::take(std::string_view line) {
  if (trimmed(line) == "\"\"\"") {
    block_ = !block_;
    if (block_) return std::nullopt;
    if (!kept_.empty()) kept_.pop_back();  // the end of the last line
    return std::exchange(kept_, "");
  }
  if (block_) {
    kept_ += line;
    kept_ += '\n';
    return std::nullopt;
  }
  if (line.ends_with('\\')) {
    kept_ += line.substr(0, line.size() - 1);
    kept_ += '\n';
    return std::nullopt;
  }
  kept_ += line;
  return std::exchange(kept_, "");
}

void LineJoiner::drop() {
  kept_.clear();
  block_ = false;
}

ChatInput read_input(std::string_view input) {
  const std::string_view text = trimmed(input);
  if (text.empty()) return {};
  if (!text.starts_with('/')) return {Kind::text, std::string(text)};
  if (text.starts_with("//")) return {Kind::text, std::string(text.substr(1))};
  const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
  const std::string name(text.substr(0, end));
  std::string rest(trimmed(text.substr(end)));
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    if (command.argument == Command::Argument::needed && rest.empty()) {
      return {Kind::mistake, name + " needs the name of a file"};
    }
    if (command.argument == Command::Argument::none && !rest.empty()) {
      return {Kind::mistake, name + " takes nothing behind it"};
    }
    return {command.kind, std::move(rest)};
  }
  return {Kind::mistake, "there is no command " + name + "; /help shows them, and // begins a question with a /"};
}

std::vector<std::string> commands_that_begin_with(std::string_view beginning) {
  std::vector<std::string> out;
  for (const Command& command : kCommands) {
    if (command.name.starts_with(beginning)) out.emplace_back(command.name);
  }
  return out;
}

std::string_view chat_help() {
  return "/system TEXT   what the model is told before everything; without TEXT: nothing\n"
         "/save FILE     write the conversation as JSON\n"
         "/load FILE     go on with one that was saved\n"
         "/stats         tokens and speed\n"
         "/clear         forget what was said\n"
         "/quit          leave; also Ctrl-D, or Ctrl-C twice\n"
         "\n"
         "A line that ends with \\ goes on in the next; between two lines of \"\"\" everything is one question.\n"
         "Ctrl-C ends an answer. Arrow keys and Ctrl-R find earlier questions.\n";
}

}  // namespace chasqui::cli
