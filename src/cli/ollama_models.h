// The folder in which Ollama keeps its models: manifests, by registry, user, model and tag, and blobs, by their digest.
// Nothing in a manifest leads out of the folder. Reads only; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/found_model.h"

namespace chasqui::cli {

// By name. What is damaged or incomplete is left out.
std::vector<FoundModel> ollama_models(const std::string& folder);

// "llama3.2", "llama3.2:1b", "user/model:tag", "hf.co/user/repo:Q8_0"; without a tag it is "latest". Capitals count
// only where two names differ in nothing else.
std::optional<FoundModel> find_in_ollama(const std::string& folder, std::string_view name);

}  // namespace chasqui::cli
