// One session as the bytes of a file: all of it that outlives the process. Nothing of a file is believed before its
// checksum is, and nothing is allocated for what is not there. Pure; any thread.
//
//   at  bytes
//    0      8  magic, "ChasquiS"
//    8      4  version of this layout
//   12     16  model whose tokens they are
//   28     16  checksum (XXH3) of all other bytes
//   44      …  fields in the order of SessionImage, texts and lists behind their sizes; nothing follows
//
// Numbers are little-endian. Errors, by code: invalid_request, damaged; conflict, of another model or another version
// of the layout. The session of another model is read all the same, for the sake of its time to live.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/session.h"

namespace chasqui {

using WeightsId = std::array<std::byte, 16>;

struct SessionImage {
  SessionId id;
  std::uint64_t owner = 0;   // Tenant::lasting
  std::uint64_t serial = 0;  // in this process
  std::int64_t used = 0;     // seconds since 1970
  SessionSettings settings;
  std::vector<Token> tokens;
  ChatHistoryPtr chat;

  std::int64_t expires() const { return used + std::chrono::duration_cast<seconds>(settings.ttl).count(); }
};

// What a session of this process must keep to; the rest of its tokens and texts is bounded by the size of the file.
struct SessionFileLimits {
  TokenCount vocabulary = 0;
};

struct LoadedSession {
  SessionImage image;
  bool foreign = false;  // of another model: the tokens mean something else
};

std::vector<std::byte> write_session(const SessionImage& image, const WeightsId& weights);
Result<LoadedSession> read_session(std::span<const std::byte> bytes, const WeightsId& weights,
                                   const SessionFileLimits& limits);

}  // namespace chasqui
