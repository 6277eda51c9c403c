// What an object may be called: parts of ASCII letters, digits, '_' and '-' with '/' between them. So a name is safe in
// a path, a URL and a header as it is. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/error.h"

namespace chasqui::store {

constexpr std::size_t kNamePartMax = 128;  // shorter than any file system's limit
constexpr std::size_t kNameMax = 512;

constexpr bool is_name_part(std::string_view text) {
  return !text.empty() && text.size() <= kNamePartMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_ascii_word_or("_-", c); });
}

constexpr bool is_object_name(std::string_view text) {
  if (text.size() > kNameMax) return false;
  for (;;) {
    const std::size_t slash = text.find('/');
    if (!is_name_part(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

// invalid_request where it is none; the name itself may be anything, so it is not repeated.
inline std::optional<Error> name_fault(std::string_view name) {
  if (is_object_name(name)) return std::nullopt;
  return invalid_field("", "the name of an object has parts of letters, digits, '_' and '-', with '/' between them");
}

}  // namespace chasqui::store
