// The flags for what the operator sees of a running server, and for when it sleeps. Names of llama-server.
#pragma once

#include <string>

#include "base/limits.h"

namespace CLI {
class App;
}

namespace chasqui {

struct OperationFlags {
  bool show_slots = true;
  Duration sleep_after{};                              // without work; zero: never
  Duration stuck_after = kTimeLimit<"stuck_seconds">;  // in one step
  Duration drain_delay{};                              // after SIGTERM, before the listeners are closed
  bool supervise = false;                              // by a process that starts it again when it dies
};

void add_operation_options(CLI::App& app, OperationFlags& flags);

}  // namespace chasqui
