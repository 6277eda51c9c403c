// `chasqui stop MODEL`: a running server unloads the model (POST /models/unload). Blocks; the main thread.
#pragma once

#include <string>

namespace chasqui::cli {

struct ModelStopOptions {
  std::string url;
  std::string api_key;
  std::string model;
};

// 0; 1 when the server did not answer, or keeps the model.
int stop_model(const ModelStopOptions& options);

}  // namespace chasqui::cli
