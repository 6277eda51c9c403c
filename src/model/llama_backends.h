// Backends of ggml that are libraries beside the binary, for GPUs above all (docs/backends.md): the binary finds them
// in one folder of its installation when it starts. One that cannot be loaded is a warning; the server goes on without
// it. Called once, by start_llama_runtime().
#pragma once

#include <filesystem>

namespace chasqui {

// Where they are looked for: lib/chasqui/ggml-VERSION beside the folder of the binary. Another version of ggml has
// other structures in the same functions, so each has its own folder. Empty: the system does not tell where the binary
// is.
std::filesystem::path backend_folder();

// Loads each libggml-*.so of `folder`, in the order of their names. A folder that is not there holds none.
void load_backends(const std::filesystem::path& folder);

}  // namespace chasqui
