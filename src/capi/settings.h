// What chasqui_open() is given: its JSON, read and checked. Pure; any thread.
#pragma once

#include <string>

#include "base/error.h"
#include "base/log.h"
#include "engine/session_engine.h"
#include "model/loaded_model.h"

namespace chasqui {

struct EngineSettings {
  std::string model;  // a path; empty: the demo model
  std::string name;   // empty: as the model says
  LoadOptions load;
  SessionEngineConfig engine;
  LogLevel log = LogLevel::warning;
};

// Errors name the member and what is allowed; members that do not exist are errors, too.
Result<EngineSettings> read_engine_settings(const std::string& text);

}  // namespace chasqui
