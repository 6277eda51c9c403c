#include "base/text_file.h"

#include <fstream>

namespace chasqui {

std::optional<std::string> read_text_file(const std::string& path, std::size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace chasqui
