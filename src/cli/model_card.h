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

// What is to be printed. Errors: the server did not answer (unavailable), has no such model, or says something else.
Result<std::string> ask_for_card(const ModelCardOptions& options);

}  // namespace chasqui::cli
