// Models where people have them already, by the names that they type: Ollama's folder, the cache of Hugging Face,
// llama.cpp's, and a folder of files. Reads only, and asks no network. At start and in commands; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/found_model.h"
#include "cli/hub_models.h"

namespace chasqui::cli {

struct ModelFolders {
  std::vector<std::string> ollama;  // the first that has a model counts
  HubFolders hub;

  std::string in_words() const;  // all of them, behind commas
};

// As OLLAMA_MODELS, LLAMA_CACHE, HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME and HOME say.
using Variable = const char* (*)(const char* name);
ModelFolders model_folders(Variable variable);

// All of them, by name.
std::vector<FoundModel> find_models(const ModelFolders& folders);

// What a name means; one that several have is Ollama's. Errors say where was looked, and which names are near.
Result<FoundModel> find_model(const ModelFolders& folders, std::string_view name);

// The models of a folder: each file, and each folder in it that has some, under its name. Errors name the folder.
Result<std::vector<FoundModel>> models_in_folder(const std::string& folder);

}  // namespace chasqui::cli
