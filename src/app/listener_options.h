// The flags that say where `chasqui serve` can be reached, and by whom. At start only.
#pragma once

#include <CLI/CLI.hpp>

#include "app/config.h"

namespace chasqui {

void add_listener_options(CLI::App& app, ServeConfig& config);

}  // namespace chasqui
