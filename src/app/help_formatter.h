// How `--help` shows an option: "--port PORT (0 to 65535; default: 8080)". Owned by the commands; at start only.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace chasqui {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace chasqui
