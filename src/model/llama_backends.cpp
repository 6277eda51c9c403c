#include "model/llama_backends.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include <ggml-backend.h>

#include "base/log.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code failed;
  for (fs::directory_iterator each(folder, failed), end; !failed && each != end; each.increment(failed)) {
    const std::string name = each->path().filename().string();
    if (name.starts_with("libggml-") && name.ends_with(".so")) out.push_back(each->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string devices_of(ggml_backend_reg_t backend) {
  std::string out;
  for (std::size_t i = 0; i < ggml_backend_reg_dev_count(backend); ++i) {
    ggml_backend_dev_t device = ggml_backend_reg_dev_get(backend, i);
    out += std::string(out.empty() ? "" : ", ") + ggml_backend_dev_name(device) + ": " +
           ggml_backend_dev_description(device);
  }
  return out.empty() ? "none" : out;
}

}  // namespace

fs::path backend_folder() {
  std::error_code failed;
  const fs::path binary = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  return binary.parent_path().parent_path() / "lib" / "chasqui" / "ggml-" CHASQUI_LLAMA_VERSION;
}

void load_backends(const fs::path& folder) {
  for (const fs::path& library : libraries_in(folder)) {
    take_llama_error();
    if (ggml_backend_reg_t backend = ggml_backend_load(library.c_str()); backend != nullptr) {
      log_info("backend loaded", {{"library", library.string()}, {"devices", devices_of(backend)}});
    } else {
      log_warning("backend not loaded", {{"library", library.string()}, {"why", take_llama_error()}});
    }
  }
}

}  // namespace chasqui
