// From the name of a model, as people type it who have it in Ollama, in the cache of Hugging Face or in llama.cpp's, to
// its file. What is a path stays one. Reads folders only, and asks no network; at start and in commands.
#pragma once

#include <string>
#include <vector>

#include "app/config.h"
#include "base/error.h"
#include "cli/found_models.h"

namespace chasqui {

// The folders of this process's environment.
cli::ModelFolders folders_of_models();

// A file that there is, written like a path: with a slash, or .gguf at its end.
bool names_file(const std::string& given);

// Neither a file that there is, nor written like one.
bool is_model_name(const std::string& given);

// The path where it is one; errors say where was looked, and what is near.
Result<std::string> file_of_model(const std::string& given);

// The files of a model of a server, and of its draft model: a name, or a repository of --hf-repo, becomes a path, or
// config.not_found says why there is none. Adds to `notes` what of it has no effect.
void find_files(ServeConfig& config, std::vector<std::string>& notes);

}  // namespace chasqui
