// Pictures and sounds of a prompt. What a client sends is a MediaFile; what the model reads of it is a MediaUnit, which
// takes a place in the prompt for each row of the model. Those places hold numbers below zero, made of the unit's
// identity, so that prompts are compared, kept and found by their numbers alone, whatever is in them. Pure values;
// shared read-only by the offload pool, the loop and one worker.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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
  // Of models whose positions have several dimensions: what follows a picture is further on by so much, for them. 0: by
  // as many as it has.
  TokenCount advance = 0;
  std::shared_ptr<const MediaPixels> pixels;
};
using MediaUnits = std::vector<MediaUnit>;                // ascending, none overlaps another
using MediaUnitsPtr = std::shared_ptr<const MediaUnits>;  // null: the prompt is text alone

// The number in this place of a unit, below kNoToken: the same for equal units in every process. REQUIRES: place >= 0
Token media_token(const Checksum& identity, TokenCount place);

// The one that has this position of a prompt, or begins behind it first; null: there is none.
const MediaUnit* unit_at(const MediaUnitsPtr& units, TokenCount position);
const MediaUnit* unit_from(const MediaUnitsPtr& units, TokenCount position);

// The first so many tokens, without a unit that they have only a part of.
TokenCount whole_units(const MediaUnitsPtr& units, TokenCount tokens);

// Says where each begins in a prompt that has the numbers of all of them, in this order. False: it has others, too few
// or too many.
bool place_units(MediaUnits& units, std::span<const Token> prompt);

// Whether they are units of this prompt: it has their numbers in their places, and ids of a vocabulary everywhere else.
bool fits_prompt(const MediaUnitsPtr& units, std::span<const Token> prompt, TokenCount vocabulary);

}  // namespace chasqui
