// The options of `chasqui serve`, which `doctor` and `config` know too. Part of app/config.
#pragma once

#include <CLI/CLI.hpp>

#include "app/config.h"

namespace chasqui {

// Those that say how much is computed at once, and on what; also of `chasqui inspect`.
void add_context_options(CLI::App& app, ServeConfig& config);
void add_serve_options(CLI::App& app, ServeConfig& config);

}  // namespace chasqui
