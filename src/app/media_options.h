// The flags for models that read pictures and sounds, and the file that makes them do so: named, or found beside the
// model. Part of app/config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "model/llama_media.h"

namespace chasqui {

struct MediaFlags {
  std::string projector;  // its file; empty: the one beside the model, if there is one
  bool automatic = true;  // … which is looked for
  bool offload = true;
  std::int32_t image_tokens_min = 0;
  std::int32_t image_tokens_max = 0;
  std::string folder;                  // whose files clients may name; empty: none
  std::vector<std::string> url_hosts;  // whose files they may name by their addresses; of the whole server
};

void add_media_options(CLI::App& app, MediaFlags& flags);

// For the model in this file. A projector is found in the folder of the model, where that is of one model alone, or a
// repository of the hub; it may be left out where it does not fit. Errors name the flag. Reads the folder, and the head
// of the projector.
Result<MediaOptions> media_options(const MediaFlags& flags, const std::string& model_path, bool of_hub);

}  // namespace chasqui
