// Takes pictures and sounds without looking at them: for the simulated engine, and for tests. A file is a unit of
// kPositions, told from others by its bytes; that it begins as a PNG, JPEG, WAV, MP3 or FLAC does is all that is asked
// of it. Const and thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "model/media_reader.h"
#include "model/tokenizer.h"

namespace chasqui {

class SimMedia final : public MediaReader {
 public:
  static constexpr TokenCount kPositions = 16;

  explicit SimMedia(std::shared_ptr<const Tokenizer> tokenizer, bool pictures = true, bool sounds = true)
      : tokenizer_(std::move(tokenizer)), pictures_(pictures), sounds_(sounds) {}

  bool takes(MediaKind kind) const override { return kind == MediaKind::picture ? pictures_ : sounds_; }
  std::string_view marker() const override;
  Result<MediaPrompt> read(std::string_view text, AddSpecial add, ParseSpecial parse,
                           std::span<const MediaFilePtr> files) const override;

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const bool pictures_;
  const bool sounds_;
};

}  // namespace chasqui
