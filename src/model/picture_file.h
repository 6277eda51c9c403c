// A picture as a client sent it (PNG, JPEG, GIF or BMP), decoded to what a projector takes. Its header is read first,
// and refused where it says that there would be too much: a file of a kilobyte can stand for gigabytes. What the header
// leaves open is bounded, too: no allocation is larger than such a picture needs, and a JPEG has few scans. Pure; any
// thread; takes milliseconds for each megapixel.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui {

struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<unsigned char> rgb;  // three bytes for each pixel, row by row
};

// Errors: invalid_request, with what is allowed.
Result<Picture> decode_picture(std::string_view bytes);

}  // namespace chasqui
