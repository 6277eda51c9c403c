// One session as the bytes of a file: all of it that outlives the process. Nothing of a file is believed before its
// checksum is, and nothing is allocated for what is not there. Pure; any thread.
//
//   at  bytes
//    0      8  magic, "ChasquiS"
//    8      4  version of this layout
//   12     16  what its tokens mean (model/vocabulary_identity)
//   28     16  checksum (XXH3) of all other bytes of the base
//   44      8  size of the base, from byte 0 on
//   52      …  fields in the order of SessionImage, texts and lists behind their sizes
//    …      …  what has become of the session since then: a record for each turn (engine/session_turn.h)
//
// Numbers are little-endian. The base is written whole, and turns behind it one by one: what a kill or a power cut has
// left of the last one is not used, and the session is what it was before that turn. A record that is wrong with a good
// one behind it was changed, and then none of the file is used.
//
// Version 2 is read, too; its messages have no pictures and sounds, and nothing may be written behind it.
//
// Errors, by code: invalid_request, damaged; conflict, of another version of the layout. The session of another
// vocabulary is read all the same, for the sake of its time to live.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/session_image.h"
#include "engine/session_turn.h"

namespace chasqui {

using VocabularyId = std::array<std::byte, 16>;

// What a session of this process must keep to; the rest of its tokens and texts is bounded by the size of the file.
struct SessionFileLimits {
  TokenCount vocabulary = 0;
};

struct LoadedSession {
  SessionImage image;
  bool foreign = false;  // of another vocabulary: the tokens mean something else
  TurnPlace place;       // of the next turn; what is behind it in the file was not written to its end
};

// The base, with no turn behind it.
std::vector<std::byte> write_session(const SessionImage& image, const VocabularyId& vocabulary);
// That of a base. REQUIRES: there is one
Checksum sum_in(std::span<const std::byte> file);
// Of whose vocabulary it says to be; nothing where it is too short.
std::optional<VocabularyId> vocabulary_in(std::span<const std::byte> file);
Result<LoadedSession> read_session(std::span<const std::byte> bytes, const VocabularyId& vocabulary,
                                   const SessionFileLimits& limits);

}  // namespace chasqui
