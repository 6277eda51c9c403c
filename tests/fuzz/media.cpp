// Pictures and sounds as clients send them, decoded within their limits by stb_image and miniaudio. What may be large
// is left out: its time and memory follow from its pixels, which the limits bound.
#include <stb/stb_image.h>
#include <stb_budget.h>

#include "fuzz.h"
#include "model/picture_file.h"
#include "model/sound_file.h"

namespace chasqui {
namespace {

bool is_large(std::string_view file) {
  constexpr std::int64_t kPixels = 200'000;
  int width = 0, height = 0, channels = 0;
  stb_bytes_max = std::size_t{1} << 20;
  const bool known = stbi_info_from_memory(reinterpret_cast<const unsigned char*>(file.data()),
                                           static_cast<int>(file.size()), &width, &height, &channels) != 0;
  stb_bytes_max = 0;
  return known && std::int64_t{width} * height > kPixels;
}

}  // namespace
}  // namespace chasqui

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  const std::string_view file = text_of(bytes, size);
  if (!is_large(file)) {
    const auto picture = decode_picture(file);
    must(picture ? picture->rgb.size() == std::size_t{3} * picture->width * picture->height
                 : !picture.error().message.empty(),
         "a picture has all its pixels, or a refusal says why");
  }
  const auto samples = decode_sound(file, 16000);
  must(samples ? !samples->empty() : !samples.error().message.empty(), "a sound has samples, or a refusal says why");
  return 0;
}
