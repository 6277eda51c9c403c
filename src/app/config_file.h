// The TOML file of `chasqui serve`, and where each of its settings came from: a default, the file, the environment or
// a flag, each stronger than the one before. At start only.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "app/value_origin.h"
#include "base/error.h"

namespace CLI {
class App;
}

namespace chasqui {

// Of each option by its long name. Missing: a default.
enum class Origin { flag, environment, file };
using Origins = std::map<std::string, Origin>;

struct Settings {
  std::vector<std::string> arguments;  // the command line, and behind it what the file says and no stronger source does
  Origins origins;
  std::string file;                          // empty: none was named
  std::map<std::string, std::size_t> lines;  // of it, for each option that it sets, by its long name
};

// `command` has the options, and may have --config; it is used up by finding out which of them the command line has.
// Errors name the file, the line and the key.
Result<Settings> read_settings(CLI::App& root, CLI::App& command, std::vector<std::string> arguments);

// `command` has the same options, with their variables.
ValueOrigins value_origins(const CLI::App& command, const Settings& settings);

// A line for each option: its value as TOML, and where it came from. `command` is parsed.
std::string settings_text(const CLI::App& command, const Settings& settings);
std::string settings_json(const CLI::App& command, const Settings& settings);

}  // namespace chasqui
