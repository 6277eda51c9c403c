#include "app/settings_text.h"

#include <fstream>

#include "base/limits.h"

namespace chasqui {
namespace {

constexpr std::size_t kTextMax = kSizeLimit<"key_file_bytes">;  // the other file that operators write

}  // namespace

Result<std::string> read_settings_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kTextMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) return invalid_field("", "it cannot be read, or there is nothing in it");
  if (text.size() > kTextMax) return invalid_field("", "it has over 4 MiB");
  return text;
}

}  // namespace chasqui
