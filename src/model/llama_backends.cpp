#include "model/llama_backends.h"

#include <algorithm>
#include <atomic>
#include <system_error>

#include <ggml-backend.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shared_library.h"
#include "model/llama_runtime.h"

namespace chasqui {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> libraries_in(const fs::path& folder, std::error_code& failed) {
  std::vector<fs::path> out;
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

// Why others could have made it what it is; empty: they could not.
std::string doubt(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::generic_category().message(errno);
  if (found.st_uid != 0 && found.st_uid != ::geteuid()) return path.string() + " belongs to another user";
  if ((found.st_mode & S_IWOTH) != 0) return path.string() + " may be written by all users";
  return "";
}

Backend load(const fs::path& library) {
  Backend out{library.string(), "", doubt(library)};
  if (!out.why.empty()) return out;
  SharedLibrary opened({library.c_str()});  // ggml opens it once more
  void (*init)() = nullptr;
  if (opened.loaded()) opened.find("ggml_backend_init", init);
  if (!opened.loaded()) {
    out.why = opened.why();
  } else if (init == nullptr) {
    out.why = "it is no backend of ggml: it has no ggml_backend_init";
  } else {
    const std::atomic<bool> quiet = true;
    const LlamaLogQuiet silence(quiet);
    if (ggml_backend_reg_t backend = ggml_backend_load(library.c_str()); backend != nullptr) {
      out.devices = devices_of(backend);
    } else {
      out.why = "it is of another ggml, or finds no device that it supports";
    }
  }
  return out;
}

}  // namespace

fs::path backend_folder() {
  std::error_code failed;
  const fs::path binary = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  return binary.parent_path().parent_path() / "lib" / "chasqui" / "ggml-" CHASQUI_LLAMA_VERSION;
}

std::vector<Backend> load_backends(const fs::path& folder) {
  std::error_code failed;
  const std::vector<fs::path> libraries = libraries_in(folder, failed);
  if (failed == std::errc::no_such_file_or_directory) return {};
  if (failed) return {{folder.string(), "", failed.message()}};
  std::vector<Backend> out;
  const std::string doubtful = libraries.empty() ? "" : doubt(folder);
  for (const fs::path& library : libraries) {
    out.push_back(doubtful.empty() ? load(library) : Backend{library.string(), "", doubtful});
  }
  return out;
}

}  // namespace chasqui
