// Proves that a model file works: loads it the way the server does, with several slots, decodes prompts and single
// tokens, trims, and prints how fast that was.
#pragma once

#include <string>

namespace mkmodel {

// True when all went well; what did not is printed.
bool check_model(const std::string& path, int threads);

}  // namespace mkmodel
