// The flags of `chasqui serve` that say what is promised to whom: targets of the classes, who goes first, and how much
// may wait or run at most. Part of app/config.
#pragma once

#include "app/config.h"

namespace CLI {
class App;
}

namespace chasqui {

// `config` outlives the parsing.
void add_scheduling_options(CLI::App& app, ServeConfig& config);
void add_limit_options(CLI::App& app, ServeConfig& config);

}  // namespace chasqui
