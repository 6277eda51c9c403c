// A model that was found where its user has it already. A plain value.
#pragma once

#include <cstdint>
#include <string>

namespace chasqui::cli {

struct FoundModel {
  std::string name;         // as the users of what has it type it
  std::string path;         // of its file, or of the first of its parts
  std::uint64_t bytes = 0;  // of all parts
  std::string format;       // of its weights, "Q4_K_M"; empty: nothing says
  std::string from;         // "Ollama", "Hugging Face", "llama.cpp", "folder"
  bool adapted = false;     // what has it would load an adapter with it
};

}  // namespace chasqui::cli
