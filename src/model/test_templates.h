// For the tests of this folder: chat templates with the demo model's vocabulary, and the files of libllama's source.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/llama_chat_template.h"
#include "model/test_weights.h"

namespace chasqui {

// Of the demo model, where there is no `source`.
inline std::unique_ptr<LlamaChatTemplate> make_template(const std::string& source = {}) {
  auto made = LlamaChatTemplate::make(test_weights(), source);
  CHECK(made, made ? "" : made.error().message);
  return std::move(*made);
}

inline std::vector<std::filesystem::path> template_files() {
  std::vector<std::filesystem::path> out;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(CHASQUI_TEMPLATES, absent)) {
    if (entry.path().extension() == ".jinja") out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace chasqui
