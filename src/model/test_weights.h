// For the tests of this folder: the demo model, loaded once per test program.
#pragma once

#include <string>

#include "base/error.h"
#include "model/llama_weights.h"

namespace chasqui {

inline std::string test_model_path() { return CHASQUI_SOURCE_DIR "/models/demo/chasqui-demo.gguf"; }

inline WeightsPtr test_weights() {
  static const Result<WeightsPtr> loaded = LlamaWeights::from_file(test_model_path());
  CHECK(loaded, loaded ? "" : loaded.error().message);
  return *loaded;
}

}  // namespace chasqui
