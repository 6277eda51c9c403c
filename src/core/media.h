// Pictures and sounds of a prompt. What a client sends is a MediaFile; what the model reads of it is a MediaUnit, which
// takes as many places in the prompt as the model has positions for it. Those places hold numbers below zero, made of
// the unit's identity, so that prompts are compared, kept and found by their numbers alone, whatever is in them. Pure
// values; shared read-only by the offload pool, the loop and one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "core/types.h"

namespace chasqui {

enum class MediaKind : std::uint8_t { picture, sound };

// Bytes as a client sent them (PNG, JPEG, WAV …), never trusted to be what they claim.
struct MediaFile {
  MediaKind kind = MediaKind::picture;
  std::string bytes;
};
using MediaFilePtr = std::shared_ptr<const MediaFile>;

// Decoded, and cut as the projector wants it; the model reads it as a whole or not at all.
struct MediaPixels;  // of model/: what the projector encodes
struct MediaUnit {
  MediaKind kind = MediaKind::picture;
  Checksum identity{};       // of its content, the projector and the settings that it was read with
  TokenCount begin = 0;      // its first place in the prompt
  TokenCount positions = 0;  // at least 1
  bool causal = true;        // false: its rows are computed in one batch
  std::shared_ptr<const MediaPixels> pixels;
};
using MediaUnits = std::vector<MediaUnit>;  // ascending, none overlaps another
using MediaUnitsPtr = std::shared_ptr<const MediaUnits>;  // null: the prompt is text alone

}  // namespace chasqui
