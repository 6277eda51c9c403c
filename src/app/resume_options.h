// Options of `chasqui serve` for streams that clients may come back to. Part of app/config.
#pragma once

#include <CLI/CLI.hpp>

#include "app/config.h"

namespace chasqui {

void add_resume_options(CLI::App& app, ServeConfig& config);

}  // namespace chasqui
