// `chasqui show MODEL`: what a model of a running server is, as POST /api/show tells it. Blocks; the main thread.
#pragma once

#include <string>

#include "base/error.h"

namespace chasqui::cli {

struct ModelCardOptions {
  std::string url;
  std::string api_key;
  std::string model;
  bool json = false;  // as the server says it
};

// `body`: of POST /api/show, of Chasqui or of Ollama. Errors: it is of another form.
Result<std::string> model_card(const std::string& body);

// 0; 1 when the server did not answer, or has no such model.
int print_model_card(const ModelCardOptions& options);

}  // namespace chasqui::cli
