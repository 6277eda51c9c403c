#include "app/flags_document.h"

#include <string_view>

#include <CLI/CLI.hpp>

#include "app/help_formatter.h"

namespace chasqui {
namespace {

constexpr const char* kFlagsHead = R"(# Flags of `chasqui serve`

All of them, with the environment variable that does the same; `chasqui config --flags` prints this page, and
`chasqui config` the settings that are in force and where each came from. A flag wins over its variable, a variable over
the file of `--config`. llama-server's flags that are not here: [llama_flags.md](llama_flags.md).
)";

// As a cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string code(std::string_view text) { return text.empty() ? "" : '`' + cell(text) + '`'; }

std::string names_of(const CLI::Option& option) {
  std::string out;
  for (const std::string& name : option.get_snames()) out += (out.empty() ? "`-" : ", `-") + name + '`';
  for (const std::string& name : option.get_lnames()) out += (out.empty() ? "`--" : ", `--") + name + '`';
  return out;
}

std::string row(const CLI::Option& option) {
  const auto [name, range, standard] = option_value(option);
  std::string takes = code(name);
  if (!range.empty()) takes += (takes.empty() ? "" : ", ") + range;
  std::string out = "| " + names_of(option);
  for (const std::string& text : {takes, code(standard), code(option.get_envname()), cell(option.get_description())}) {
    out += " | " + text;
  }
  return out + " |\n";
}

}  // namespace

std::string flags_document(const CLI::App& command) {
  std::string out = kFlagsHead;
  for (const std::string& group : command.get_groups()) {
    std::string rows;
    for (const CLI::Option* option : command.get_options()) {
      const bool says_only = option == command.get_help_ptr() || option == command.get_version_ptr();
      if (option->get_group() == group && !says_only) rows += row(*option);
    }
    if (group.empty() || rows.empty()) continue;
    out += "\n## " + group + "\n\n| flag | takes | default | variable | |\n|---|---|---|---|---|\n" + rows;
  }
  return out;
}

}  // namespace chasqui
