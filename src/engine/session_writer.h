// Where sessions are written so that they outlive the process: a folder of this process alone (engine/session_store),
// or what several nodes share (engine/shared_session_store). Owned by the part that has its thread; one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/metrics.h"
#include "engine/session_image.h"
#include "engine/session_turn.h"

namespace chasqui {

// What has become of one session: all of it, or a turn behind what was written, or neither: it has gone.
struct SessionChange {
  std::string id;
  std::optional<SessionImage> image{};
  std::optional<SessionTurn> turn{};  // what was written before was written by this writer, or found by it
  std::uint64_t lease = 0;            // by which this node has the session, where nodes share them
  std::uint64_t owner = 0;            // Tenant::lasting
  bool made = false;                  // it has just been made, here: no node can have had it
  std::int64_t ttl = 0;               // seconds that the session has left; 0: it has gone
};

class SessionWriter {
 public:
  virtual ~SessionWriter() = default;

  // What became of each, in their order. Those without an error are what is found after any end of the process.
  // not_found: a turn has nothing that it could follow, the session must be written whole; conflict: another node has
  // the session, and what it has done here since is not kept.
  virtual std::vector<std::optional<Error>> write(const std::vector<SessionChange>& changes) = 0;
  // After so many turns a session is to be written whole again.
  virtual std::size_t turns_max() const = 0;
  // For messages: a folder, or the address of a store without its password.
  virtual const std::string& place() const = 0;
  // Any thread: so far.
  virtual const Counter& bytes_written() const = 0;
};

}  // namespace chasqui
