// LoRA adapters as files: looked at before libllama sees them, whatever is in them, and kept open, so that an adapter
// is there again after its model has slept, also when its file has been moved or removed. Any thread; reads the disk.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/error.h"
#include "model/model_info.h"

namespace chasqui {

// One to load.
struct AdapterFile {
  std::string path;
  std::string name;
  float scale = 1;
  bool at_run_time = false;
};

// invalid_request, with `why` as a sentence.
Error bad_adapter(const std::string& name, const std::string& path, const std::string& why);

struct OpenAdapter {
  AdapterInfo info{};
  std::shared_ptr<std::FILE> stream{};  // where it begins does not matter
};

// Opens it, and looks at all of it. Errors: not_found where there is no such file, or what is wrong with it; their
// message names adapter and file.
Result<OpenAdapter> open_adapter(const AdapterFile& file);

// Whether its bytes are still those that were opened.
bool has_changed(const OpenAdapter& adapter);

}  // namespace chasqui
