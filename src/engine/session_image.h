// All of one session that outlives the process. A plain value: made of a session by the thread of its table, or of a
// file; any thread.
#pragma once

#include <chrono>
#include <vector>

#include "engine/session.h"

namespace chasqui {

struct SessionImage {
  SessionId id;
  std::uint64_t owner = 0;   // Tenant::lasting
  std::uint64_t serial = 0;  // in this process
  std::int64_t used = 0;     // seconds since 1970
  SessionSettings settings;
  Checksum vocabulary{};  // Session::vocabulary; zeros: that of the store
  std::vector<Token> tokens;
  ChatHistoryPtr chat;

  std::int64_t expires() const { return used + std::chrono::duration_cast<seconds>(settings.ttl).count(); }
};

}  // namespace chasqui
