// What a model with a projector makes of pictures and sounds: implemented by LlamaMedia over libllama's mtmd, and by
// SimMedia in tests. Const and thread-safe. Decoding takes milliseconds, so it belongs in the offload pool.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/media.h"
#include "model/tokenizer.h"

namespace chasqui {

// A prompt whose units stand where its text had the markers.
struct MediaPrompt {
  std::vector<Token> tokens;      // below zero: places of a unit
  MediaUnitsPtr units;            // null: there were no files
  std::size_t decoded_bytes = 0;  // of the files
};

class MediaReader {
 public:
  virtual ~MediaReader() = default;

  virtual bool takes(MediaKind kind) const = 0;

  // Stands for one file in the text of a message. It has random parts, made once in a process, so that no client's
  // text contains it.
  virtual std::string_view marker() const = 0;

  // As Tokenizer::tokenize(), where `text` has the marker once for each file, in their order. Errors: invalid_request
  // on `messages` for a file that cannot be decoded, is not of its kind or is over a limit, and where the template has
  // left out or doubled a marker.
  virtual Result<MediaPrompt> read(std::string_view text, AddSpecial add, ParseSpecial parse,
                                   std::span<const MediaFilePtr> files) const = 0;
};

}  // namespace chasqui
