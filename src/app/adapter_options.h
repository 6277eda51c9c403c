// The flags for LoRA adapters. Names of llama-server, where `:NAME` at the end is ours.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "model/adapter_file.h"

namespace CLI {
class App;
}

namespace chasqui {

struct AdapterFlags {
  std::vector<std::string> plain;   // FILE or FILE:NAME
  std::vector<std::string> scaled;  // FILE:SCALE or FILE:SCALE:NAME
  bool apply = true;                // to requests that say nothing
};

void add_adapter_options(CLI::App& app, AdapterFlags& flags);

// In their order, those with a scale last. The default name is that of the file, without folder and ending.
// Errors for a name or a scale that cannot be, and for a name that two have.
Result<std::vector<AdapterFile>> adapter_files(const AdapterFlags& flags);

}  // namespace chasqui
