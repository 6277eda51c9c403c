// The command lines of `chasqui ps`, `show` and `stop`, which ask a running server. The calling thread.
#pragma once

#include <string>

#include "cli/model_card.h"
#include "cli/model_stop.h"
#include "cli/served_list.h"

namespace CLI {
class App;
}

namespace chasqui {

struct ModelCommands {
  cli::ServedListOptions ps;
  cli::ModelCardOptions card;
  cli::ModelStopOptions stop;
};

// The running server that a command asks.
void add_server_address(CLI::App& app, std::string& url, std::string& api_key);

CLI::App* add_ps_command(CLI::App& app, cli::ServedListOptions& options);
CLI::App* add_show_command(CLI::App& app, cli::ModelCardOptions& options);
CLI::App* add_stop_command(CLI::App& app, cli::ModelStopOptions& options);

// Of a server's model; of a file, what `inspect` says, and of a model that is here where no server answers, unless its
// address was given. Returns the exit code.
int run_show(const cli::ModelCardOptions& options, bool has_address);

}  // namespace chasqui
