// What requests to any model share on their way from a connection to an answer: the loop and its pool, who callers are,
// the log of requests, streams that are kept. Part of the Node; loop thread, except that the pool is told what to run.
#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "base/limits.h"

namespace chasqui {

namespace net {
class EventLoop;
class OffloadPool;
}  // namespace net
class BatchDesk;
class Clock;
class IdempotencyStore;
class RequestHasher;
class KeptStreams;
class KeyRing;
class RequestLog;
class SkippedTools;
struct MediaLinks;

struct FrontendConfig {
  std::string version{};
  Duration ping_every = kTimeLimit<"silent_seconds">;  // silence after which a stream gets a comment
  // In flight of one tenant, where its key says nothing; 0: no limit.
  std::size_t tenant_requests = kSizeLimit<"tenant_requests">;
  std::size_t anonymous_requests = 0;  // … where there is one tenant; 0: no limit
};

struct Frontend {
  const FrontendConfig& config;
  net::EventLoop& loop;
  net::OffloadPool& offload;
  const Clock& clock;
  const KeyRing& keys;
  const RequestHasher& request_hasher;
  SkippedTools& skipped_tools;  // those that the log has named
  IdempotencyStore& idempotency;
  RequestLog* requests = nullptr;  // null: requests are not logged
  KeptStreams* kept = nullptr;     // null: no stream can be resumed
  BatchDesk* batches = nullptr;    // null: there are no files and no batches
  MediaLinks* links = nullptr;     // null: clients send their pictures themselves
};

}  // namespace chasqui
