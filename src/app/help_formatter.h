// How `--help` shows an option: "--port PORT (0 to 65535; default: 8080)"; and that of serve its many options. Owned by
// the commands; at start only.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace chasqui {

// What an option takes.
struct OptionValue {
  std::string name;      // "PORT", "auto|on|off"; empty: nothing
  std::string range;     // "0 to 65535"; empty: none
  std::string standard;  // without it; empty: nothing
};
OptionValue option_value(const CLI::Option& option);

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
};

// What most people set stands in a group at the top, and in no other.
class ServeHelpFormatter : public HelpFormatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_group(std::string group, bool is_positional, std::vector<const CLI::Option*> options) const override;
};

}  // namespace chasqui
