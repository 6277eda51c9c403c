#include "app/backends.h"

#include "base/log.h"
#include "model/llama_runtime.h"

namespace chasqui {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> loaded = [] {
    // A processor that lacks something is said where a model is loaded.
    return start_llama_runtime() ? load_backends(backend_folder()) : std::vector<Backend>();
  }();
  return loaded;
}

void log_backends() {
  for (const Backend& backend : backends()) {
    if (backend.why.empty()) {
      log_info("backend loaded", {{"library", backend.library}, {"devices", backend.devices}});
    } else {
      log_warning("backend not loaded", {{"library", backend.library}, {"why", backend.why}});
    }
  }
}

}  // namespace chasqui
