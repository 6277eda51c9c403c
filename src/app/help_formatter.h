// How `--help` shows an option: "--port PORT (0 to 65535; default: 8080)". Owned by the commands; at start only.
#pragma once

#include <string>

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

}  // namespace chasqui
