// `chasqui simulate`: the scheduler on virtual time, from the command line. Start-up thread only.
#pragma once

#include "app/simulate_options.h"

namespace chasqui {

// Returns the exit code: 0; 1 when a promise was broken; 2 when the trace cannot be read or written.
int simulate(const SimulateConfig& config);

}  // namespace chasqui
