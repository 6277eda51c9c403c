#include "model/picture_file.h"

#include <memory>
#include <string>

#include <stb/stb_image.h>
#include <stb_budget.h>

#include "base/limits.h"
#include "model/media_limits.h"

namespace chasqui {
namespace {

// What stb_image keeps while it reads a header.
constexpr std::size_t kStbHeaderBytes = std::size_t{1} << 20;
// For a pixel: four channels of two bytes.
constexpr std::size_t kPixelBytes = 8;

class Budget {
 public:
  explicit Budget(std::size_t bytes) { stb_bytes_max = bytes; }
  ~Budget() { stb_bytes_max = 0; }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
};

// Each goes over all pixels, and may be a few bytes in the file.
std::size_t jpeg_scans(std::string_view bytes) {
  constexpr std::string_view kStartOfScan = "\xFF\xDA";
  if (!bytes.starts_with("\xFF\xD8")) return 0;
  std::size_t scans = 0;
  for (auto at = bytes.find(kStartOfScan); at != bytes.npos; at = bytes.find(kStartOfScan, at + 2)) ++scans;
  return scans;
}

Error unreadable_picture() {
  const char* why = stbi_failure_reason();
  std::string text = "a picture cannot be decoded";
  if (why != nullptr) text += std::string(" (") + why + ")";
  return refused_media(text + "; PNG, JPEG, GIF and BMP are read");
}

Result<void> check_size(std::size_t width, std::size_t height) {
  constexpr std::size_t kSide = kSizeLimit<"picture_side">;
  constexpr std::size_t kPixels = kSizeLimit<"picture_pixels">;
  if (width <= kSide && height <= kSide && width * height <= kPixels) return {};
  return refused_media("a picture is " + std::to_string(width) + " × " + std::to_string(height) +
                       " pixels large; at most " + std::to_string(kPixels) + " pixels are read, and " +
                       std::to_string(kSide) + " a side");
}

}  // namespace

Result<Picture> decode_picture(std::string_view bytes) {
  if (auto small = check_media_size(MediaKind::picture, bytes.size()); !small) return small.error();
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto size = static_cast<int>(bytes.size());
  int width = 0;
  int height = 0;
  int channels = 0;
  {
    const Budget budget(kStbHeaderBytes);
    if (stbi_info_from_memory(data, size, &width, &height, &channels) == 0) return unreadable_picture();
  }
  if (width < 1 || height < 1) return refused_media("a picture has no pixels");
  const auto pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  if (auto fits = check_size(static_cast<std::size_t>(width), static_cast<std::size_t>(height)); !fits) {
    return fits.error();
  }
  if (jpeg_scans(bytes) > kSizeLimit<"picture_scans">) {
    return refused_media("a JPEG has at most " + std::to_string(kSizeLimit<"picture_scans">) + " scans");
  }
  const Budget budget(kPixelBytes * pixels + 2 * bytes.size() + kStbHeaderBytes);
  const std::unique_ptr<stbi_uc, void (*)(void*)> decoded(
      stbi_load_from_memory(data, size, &width, &height, &channels, 3), stbi_image_free);
  if (!decoded) return unreadable_picture();
  Picture picture{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), {}};
  const std::size_t all = 3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  picture.rgb.assign(decoded.get(), decoded.get() + all);
  return picture;
}

}  // namespace chasqui
