// How many resumable streams are kept, how long, and how much of each. Plain values, constant after start.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "base/limits.h"

namespace chasqui {

struct KeptStreamLimits {
  std::size_t streams = kSizeLimit<"resume_streams">;
  std::size_t tenant_streams = kSizeLimit<"resume_tenant_streams">;  // of one that has a key
  std::size_t bytes = kSizeLimit<"resume_bytes">;                    // of each
  Duration ttl = kTimeLimit<"resume_ttl_seconds">;
};

}  // namespace chasqui
