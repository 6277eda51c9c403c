#include "app/man_page.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string_view>

#include <CLI/CLI.hpp>

#include "app/help_formatter.h"
#include "cli/terminal.h"

namespace chasqui {
namespace {

// As text of roff: no character is an order, and long lists of words may be broken.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool line_begins = i == 0 || text[i - 1] == '\n';
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '|': out += "|\\:"; break;
      default: out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string page_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? "chasqui" : "chasqui-" + command.get_name();
}

std::string reference(const std::string& page) { return bold(page) + "(1)"; }

std::string capitals(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string head(const CLI::App& command, std::string_view says) {
  // Lines are neither stretched nor broken inside words: flags are to be copied.
  return ".TH " + capitals(page_name(command)) + " 1 \"\" \"Chasqui " + CHASQUI_VERSION +
         "\" \"Chasqui\"\n.ad l\n.nh\n.SH NAME\n" + page_name(command) + " \\- " + roff(says) + "\n";
}

bool is_positional(const CLI::Option& option) { return option.get_positional(); }

// "--port, -p PORT" as a tag, and what it is below.
std::string entry(const CLI::Option& option) {
  const auto [name, range, standard] = option_value(option);
  std::string tag;
  for (const std::string& each : option.get_snames()) tag += (tag.empty() ? "" : ", ") + bold("-" + each);
  for (const std::string& each : option.get_lnames()) tag += (tag.empty() ? "" : ", ") + bold("--" + each);
  if (tag.empty()) tag = italic(option.get_name(true));
  if (!name.empty() && !is_positional(option)) tag += ' ' + italic(name);
  std::string notes = range;
  if (!standard.empty()) notes += (notes.empty() ? "default: " : "; default: ") + standard;
  if (!option.get_envname().empty())
    notes += (notes.empty() ? "environment: " : "; environment: ") + option.get_envname();
  std::string out = ".TP\n" + tag + '\n';
  const std::string description = roff(option.get_description());
  if (!description.empty()) out += description + '\n';
  if (!notes.empty()) out += '(' + roff(notes) + ")\n";
  return description.empty() && notes.empty() ? out + "\\&\n" : out;
}

std::string options_of(const CLI::App& command) {
  std::string positional, groups;
  for (const CLI::Option* option : command.get_options()) {
    if (is_positional(*option)) positional += entry(*option);
  }
  for (const std::string& group : command.get_groups()) {
    std::string entries;
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_group() == group && !is_positional(*option)) entries += entry(*option);
    }
    if (group.empty() || entries.empty()) continue;
    groups += (group == "Options" ? "" : ".SS " + roff(group) + '\n') + entries;
  }
  return (positional.empty() ? "" : ".SH ARGUMENTS\n" + positional) + ".SH OPTIONS\n" + groups;
}

std::string synopsis(const CLI::App& command) {
  std::string out = ".SH SYNOPSIS\n" + bold("chasqui " + command.get_name()) + " [" + italic("OPTION") + " ...]";
  for (const CLI::Option* option : command.get_options()) {
    if (!is_positional(*option)) continue;
    const std::string name = italic(option->get_name(true));
    out += option->get_required() ? ' ' + name : " [" + name + ']';
    if (option->get_expected_max() > 1) out += " ...";
  }
  for (const std::string& alias : command.get_aliases()) out += "\n.br\n" + bold("chasqui " + alias) + " ...";
  return out + '\n';
}

std::vector<const CLI::App*> commands_of_root(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

std::string root_page(const CLI::App& root) {
  std::string out = head(root, "serve GGUF language models to many clients at once");
  out += ".SH SYNOPSIS\n" + bold("chasqui") + ' ' + italic("COMMAND") + " [" + italic("OPTION") + " ...]\n";
  out += ".SH DESCRIPTION\n" + roff(root.get_description()) + "\n.PP\n" +
         "Settings come from flags, from the environment and from the file of " + bold("--config") +
         ", the stronger first.\n";
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of_root(root)) {
    out += ".TP\n" + reference(page_name(*command)) + '\n' + roff(command->get_description()) + '\n';
  }
  out += ".SH OPTIONS\n";
  for (const CLI::Option* option : root.get_options()) out += entry(*option);
  out +=
      ".SH EXIT STATUS\n0 when the command did what it was asked to, 1 when it could not, 2 for mistakes in flags and "
      "files; others are on the page of a command.\n";
  return out +
         ".SH EXAMPLES\n.nf\nchasqui serve \\-m model.gguf\nchasqui chat \"What is a slot?\"\nchasqui help "
         "serve\n.fi\n";
}

std::string command_page(const CLI::App& root, const CLI::App& command) {
  std::string out = head(command, command.get_description()) + synopsis(command);
  out += ".SH DESCRIPTION\n" + roff(command.get_description()) + ".\n" + options_of(command);
  if (!command.get_footer().empty()) out += ".SH NOTES\n.nf\n" + roff(command.get_footer()) + "\n.fi\n";
  return out + ".SH SEE ALSO\n" + reference(page_name(root)) + '\n';
}

int write_pages(const CLI::App& root, const std::string& folder) {
  for (const auto& [name, content] : man_pages(root)) {
    std::ofstream file(folder + '/' + name, std::ios::binary | std::ios::trunc);
    file << content;
    file.close();
    if (file) continue;
    std::fprintf(stderr, "chasqui man: cannot write %s/%s\n", cli::harmless(folder).c_str(), name.c_str());
    return 1;
  }
  return 0;
}

}  // namespace

CLI::App* add_man_command(CLI::App& app, ManConfig& config) {
  CLI::App* man = app.add_subcommand("man", "Print the manual page of a command: chasqui man serve | man -l -");
  man->add_option("command", config.command, "without it the page of chasqui itself")->type_name("COMMAND");
  man->add_option("--into", config.folder, "write all pages into this folder, as packages have them")->type_name("DIR");
  return man;
}

std::vector<std::pair<std::string, std::string>> man_pages(const CLI::App& root) {
  std::vector<std::pair<std::string, std::string>> out = {{"chasqui.1", root_page(root)}};
  for (const CLI::App* command : commands_of_root(root)) {
    out.emplace_back(page_name(*command) + ".1", command_page(root, *command));
  }
  return out;
}

int print_man_page(const CLI::App& root, const ManConfig& config) {
  if (!config.folder.empty()) return write_pages(root, config.folder);
  if (config.command.empty()) {
    cli::write_out(root_page(root));
    return 0;
  }
  for (const CLI::App* command : commands_of_root(root)) {
    const std::vector<std::string>& aliases = command->get_aliases();
    if (command->get_name() != config.command && std::ranges::find(aliases, config.command) == aliases.end()) continue;
    cli::write_out(command_page(root, *command));
    return 0;
  }
  std::fprintf(stderr, "chasqui man: there is no subcommand '%s'; `chasqui help` lists all\n",
               cli::harmless(config.command).c_str());
  return 2;
}

}  // namespace chasqui
