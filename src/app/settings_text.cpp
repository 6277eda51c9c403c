#include "app/settings_text.h"

#include "base/limits.h"
#include "base/text_file.h"

namespace chasqui {

Result<std::string> read_settings_text(const std::string& path) {
  auto text = read_text_file(path, kSizeLimit<"settings_file_bytes">);
  if (!text || text->empty()) return invalid_field("", "it cannot be read, or there is nothing in it");
  if (text->size() > kSizeLimit<"settings_file_bytes">) return invalid_field("", "it has over 4 MiB");
  return std::move(*text);
}

}  // namespace chasqui
