// What one change has made of a session, and how it stands in a file behind the base: only what is new, so that a turn
// costs its own bytes however long the history is. Pure; any thread.
//
//   at  bytes
//    0      4  "Turn"
//    4      4  bytes of the fields, n
//    8     16  checksum (XXH3) of the base's checksum, of where the record is, of n and of the fields
//   24      n  fields: when it was used, tokens that stay and those that are new, the same of messages
//
// Where it is and whose base it follows are part of the checksum, so a record is good in its own place alone. To read
// one twice changes nothing more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "engine/session_image.h"

namespace chasqui {

struct SessionTurn {
  std::int64_t used = 0;        // seconds since 1970
  std::size_t kept = 0;         // so many of the tokens before stay
  std::vector<Token> tokens{};  // … and these follow
  ChatHistoryPtr before{};      // as it was written last
  ChatHistoryPtr chat{};        // as it is now
};

// As if `then` had come with what was there before. REQUIRES: it follows on that
void add_turn(SessionTurn& turn, SessionTurn then);
void add_turn(SessionImage& image, SessionTurn then);

// Where the next turn goes.
struct TurnPlace {
  Checksum base{};             // that of the base
  std::size_t base_bytes = 0;  // … and its size
  std::size_t end = 0;         // of the base and the turns behind it
  bool has_files = true;       // its messages say which pictures and sounds they have
};

std::vector<std::byte> write_turn(const SessionTurn& turn, const TurnPlace& place);
// Brings the image from the base to the newest turn that was written to its end, and says where that is. Error:
// invalid_request when a turn before the last one was changed.
Result<std::size_t> read_turns(std::span<const std::byte> file, const TurnPlace& place, SessionImage& image);

}  // namespace chasqui
