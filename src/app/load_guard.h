// While a model is loaded: what its file makes libllama die of ends the process in order, with a line that names the
// file and exit code 1, instead of with a signal and a core. Broken files are refused before (model/gguf_summary); this
// is for unforeseen faults, and no protection against a file that wants to do harm. What is loaded later is tried in a
// process of its own instead (app/load_trial). One at a time; the signals are those of the process.
#pragma once

#include <optional>
#include <string>

#include "app/deadly_signals.h"

namespace chasqui {

class LoadGuard {
 public:
  explicit LoadGuard(const std::string& model);

 private:
  std::optional<DeadlySignals> deadly_signals_;
};

}  // namespace chasqui
