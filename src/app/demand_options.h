// The flags of `chasqui serve` for models that are loaded when a request asks for them. Part of app/config.
#pragma once

#include <string>

#include "app/config.h"

namespace CLI {
class App;
}

namespace chasqui {

// `config` outlives the parsing.
void add_demand_options(CLI::App& app, ServeConfig& config);

}  // namespace chasqui
