// The flags of `chasqui serve` that say how next tokens are guessed. Part of app/config.
#pragma once

#include "core/types.h"

namespace CLI {
class App;
}

namespace chasqui {

struct SpeculationOptions {
  bool on = true;
  TokenCount most = 7;  // guesses in one step: with its own row a sequence has eight, which kernels like

  TokenCount guesses_max() const { return on ? most : 0; }
};

// `options` outlives the parsing.
void add_speculation_options(CLI::App& app, SpeculationOptions& options);

}  // namespace chasqui
