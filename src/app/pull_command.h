// `chasqui pull`: its command line and environment, and what it tells while it works. The calling thread.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace chasqui {

struct PullConfig {
  std::string name;  // USER/REPO[:QUANT]
  std::string file;
  std::string revision = "main";
  std::string token;
  bool no_projector = false;
  int retries = 5;
  bool json = false;
};

// Adds the subcommand, which fills `config`; both must outlive the parsing.
CLI::App* add_pull_command(CLI::App& app, PullConfig& config);

// 0; 1 where it failed, 2 for mistakes in what was typed or set, 128 and the number of a signal that ended it.
int run_pull(const PullConfig& config);

}  // namespace chasqui
