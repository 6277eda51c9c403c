// `chasqui serve --supervise`: a process that has the listening sockets and nothing else, and starts the server as its
// child, again and again. Clients that connect while there is no server wait in the sockets' queues for the next one.
#pragma once

#include "app/config.h"

namespace chasqui {

// Until it is told to stop, or the server cannot even be started; the exit code.
int supervise(const ServeConfig& config, char** argv);

// This process is the child of one.
bool is_supervised();

// The end of a process with a worker that cannot be waited for; its supervisor starts another one.
[[noreturn]] void end_hung_process();

}  // namespace chasqui
