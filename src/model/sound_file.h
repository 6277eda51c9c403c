// A sound as a client sent it (WAV, MP3 or FLAC), decoded to one channel of samples. How long it says to be is read
// first. Pure; any thread; takes milliseconds for each minute.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui {

inline constexpr float kLoudestSample = 16;

// So many samples a second, each between -16 and 16; louder than 1 is what a file of floats may be. Errors:
// invalid_request, with what is allowed.
Result<std::vector<float>> decode_sound(std::string_view bytes, std::int32_t rate);

}  // namespace chasqui
