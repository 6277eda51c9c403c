// `chasqui man [COMMAND]`: manual pages in roff, from the same tables of commands and flags as --help. The calling
// thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace chasqui {

struct ManConfig {
  std::string command;  // empty: the page of chasqui itself
  std::string folder;   // writes all pages into it instead
};

CLI::App* add_man_command(CLI::App& app, ManConfig& config);

// The names of files, "chasqui-serve.1", with their content. The first one is chasqui.1.
std::vector<std::pair<std::string, std::string>> man_pages(const CLI::App& root);
// Prints the page, or writes all of them. `root` is what has all commands. Returns the exit code.
int print_man_page(const CLI::App& root, const ManConfig& config);

}  // namespace chasqui
