// `chasqui list`: models that this machine has already, of Ollama, of Hugging Face or of a folder. The calling thread.
#pragma once

#include <string>

namespace chasqui {

// Of a folder where one is named. 0; 1 when that cannot be read.
int run_list(const std::string& folder, bool json);

}  // namespace chasqui
