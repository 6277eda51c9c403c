#include "api/body/media_folder.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/limits.h"

namespace chasqui {
namespace {

namespace fs = std::filesystem;

// Where the file is once links are followed; empty: nowhere below the folder.
fs::path place_of(const fs::path& folder, const fs::path& name) {
  std::error_code failed;
  const fs::path root = fs::canonical(folder, failed);
  if (failed) return {};
  const fs::path place = fs::canonical(root / name, failed);  // of an absolute name: that
  if (failed) return {};
  const auto end = std::ranges::mismatch(root, place);
  return end.in1 == root.end() && fs::is_regular_file(place, failed) ? place : fs::path();
}

}  // namespace

Result<std::string> read_from_media_folder(const std::string& folder, std::string_view name, const std::string& path) {
  constexpr std::size_t kMost = kSizeLimit<"media_bytes">;
  const bool usable = name.find('\0') == name.npos;  // the system would read up to there
  const fs::path place = usable ? place_of(folder, fs::path(name)) : fs::path();
  std::error_code failed;
  const std::uintmax_t size = place.empty() ? 0 : fs::file_size(place, failed);
  std::ifstream file;
  if (!place.empty() && !failed) file.open(place, std::ios::binary);
  if (!file.is_open()) {
    return invalid_field(path,
                         path + " must name a file in the folder that the server was started with (--media-path)");
  }
  if (size > kMost) {
    return invalid_field(path, path + " must be a file of at most " + std::to_string(kMost) + " bytes");
  }
  std::string bytes(static_cast<std::size_t>(size), '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace chasqui
