// Backends of ggml that are libraries beside the binary, for GPUs above all (docs/backends.md): found in one folder of
// its installation. Another version of ggml has other structures in the same functions, so the folder has the version
// in its name. Main thread, at start (app/backends).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace chasqui {

// lib/chasqui/ggml-VERSION beside the folder of the binary. Empty: the system does not tell where the binary is.
std::filesystem::path backend_folder();

struct Backend {
  std::string library;
  std::string devices;  // "Vulkan0: NVIDIA GeForce RTX 3060", with commas; "none"
  std::string why;      // it was not loaded; else empty
};

// Loads each libggml-*.so of `folder`, in the order of their names. One is not loaded if others than root and the user
// of this process could have put it there: it runs as this user. A folder that is not there holds none.
std::vector<Backend> load_backends(const std::filesystem::path& folder);

}  // namespace chasqui
