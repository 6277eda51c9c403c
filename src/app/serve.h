// `chasqui serve`: the composition root. Builds every part in order, runs the loop in the calling thread until the
// process is told to stop, and takes the parts down in reverse.
#pragma once

#include "app/config.h"

namespace chasqui {

// The process's exit code: 0 after a drain, 1 when the server could not start, 2 when there is a mistake in the keys
// (with a line that says why).
int serve(ServeConfig config);

}  // namespace chasqui
