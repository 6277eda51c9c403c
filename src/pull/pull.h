// `chasqui pull`: a model of a hub into the cache of Hugging Face's clients, where serve, list and those clients find
// it. One thread, which it blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "pull/hub.h"
#include "pull/repo_name.h"
#include "pull/stop_sign.h"
#include "pull/watcher.h"

namespace chasqui::pull {

struct PullOrder {
  RepoName name;
  std::string file;  // of the repository; empty: by the quantization of the name
  std::string revision = "main";
  bool projector = true;
  std::string cache;  // folder
};

struct PulledFile {
  std::string name;  // in the repository
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t fetched_bytes = 0;  // this time
};

struct Pulled {
  std::string model;  // as serve takes it: USER/REPO[:QUANT]
  std::string commit;
  std::vector<PulledFile> files;  // the model's first part, its others, the projector
};

// Errors say what is wrong; where the stop sign is set it was that.
Result<Pulled> pull(const PullOrder& order, Hub& hub, int retries, const StopSign& stop, Watcher& watcher);

}  // namespace chasqui::pull
