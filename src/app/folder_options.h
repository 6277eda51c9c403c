// The flags of `chasqui serve` that name folders in which something outlives the process. Part of app/config.
#pragma once

#include "app/config.h"

namespace CLI {
class App;
}

namespace chasqui {

// `config` outlives the parsing.
void add_folder_options(CLI::App& app, ServeConfig& config);

}  // namespace chasqui
