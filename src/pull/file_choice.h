// Which files of a repository a user means: the parts of a model, and the projector that goes with it. Pure; any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "pull/hub_files.h"

namespace chasqui::pull {

struct FileChoice {
  std::string model;                // what its quantization is called; empty: nothing says
  std::vector<HubFile> files;       // the first part first
  std::vector<HubFile> projectors;  // one at most
};

struct FileWish {
  std::string repo;   // for messages
  std::string quant;  // empty: as choose_model of cli/model_files says
  std::string file;   // empty: by its quantization
  bool projector = true;
};

// Errors say what there is instead.
Result<FileChoice> choose_files(const std::vector<HubFile>& files, const FileWish& wish);

}  // namespace chasqui::pull
