// What is refused of pictures and sounds before they are decoded, and how refusals are worded: they say what is
// allowed. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "core/media.h"

namespace chasqui {

inline Error refused_media(std::string why) { return invalid_field("messages", std::move(why)); }

// Of a file.
inline Result<void> check_media_size(MediaKind kind, std::size_t bytes) {
  constexpr std::size_t kMost = kSizeLimit<"media_bytes">;
  if (bytes <= kMost) return {};
  const std::string what = kind == MediaKind::picture ? "a picture" : "a sound";
  return refused_media(what + " has at most " + std::to_string(kMost) + " bytes");
}

}  // namespace chasqui
