// Decodes files of clients to pixels and samples, within the limits of picture_file and sound_file. Shared by all
// models of a server; any thread; waits as long as decoding takes. Implemented by MediaDecoders, in processes of their
// own; where there is none, LlamaMedia decodes in its own process.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/picture_file.h"

namespace chasqui {

class MediaDecoder {
 public:
  virtual ~MediaDecoder() = default;

  // There will be files: what it takes to decode them is started, so that the first one does not wait for it.
  virtual void expect_files() = 0;
  // As decode_picture() and decode_sound(). Further errors: overloaded, where it cannot decode for now.
  virtual Result<Picture> picture(std::string_view bytes) = 0;
  virtual Result<std::vector<float>> sound(std::string_view bytes, std::int32_t rate) = 0;
};

}  // namespace chasqui
