// The flags for what the operator sees of a running server, and for when it sleeps. Names of llama-server.
#pragma once

#include <string>

#include "base/clock.h"

namespace CLI {
class App;
}

namespace chasqui {

struct OperationFlags {
  bool show_slots = true;
  Duration sleep_after{};  // without work; zero: never
};

void add_operation_options(CLI::App& app, OperationFlags& flags);

}  // namespace chasqui
