/* What stb_image may allocate at a time on this thread: a few bytes of a file can ask for gigabytes. Set around each
 * call of it by src/model/picture_file, which reads the size of the picture first. */
#pragma once

#include <cstddef>

namespace chasqui {

extern thread_local std::size_t stb_bytes_max;

}  // namespace chasqui
