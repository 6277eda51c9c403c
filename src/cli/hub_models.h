// Models that were downloaded from Hugging Face: the cache of its clients, which llama.cpp uses as well (a folder for
// each repository, with snapshots by commit), and the folder of older llama.cpp, whose files have the repository in
// their names. Reads only, and asks no network; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/found_model.h"

namespace chasqui::cli {

struct HubFolders {
  std::vector<std::string> hub;    // the first that has a repository counts
  std::vector<std::string> plain;  // of older llama.cpp
};

std::vector<FoundModel> hub_models(const HubFolders& folders);

// REPO[:QUANT], with the user before the repository, and `file` of it where that is not empty. Without either Q4_K_M,
// or else Q8_0, or else the first one, as llama.cpp chooses. Errors say what the repository has, or where was looked.
Result<FoundModel> find_in_hub(const HubFolders& folders, std::string_view name, std::string_view file);

}  // namespace chasqui::cli
