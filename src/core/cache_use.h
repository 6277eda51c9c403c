// Where the beginning of a prompt came from, and why no more of it did: what the prefix cache has decided for one
// sequence. A plain value, made by Reuse, told with Usage.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/types.h"

namespace chasqui {

struct CacheUse {
  enum class Source : std::uint8_t {
    none,
    memory,      // a snapshot in host memory
    checkpoint,  // … of a model whose memory cannot be cut
    disk,        // … that was read from a file for this request
    slot,        // what a finished request has left in a slot
  };
  // Why it was not longer.
  enum class Limit : std::uint8_t {
    off,            // the request or the server uses no cache
    whole_prompt,   // but its last token, which is always computed
    differs,        // nothing longer begins like the prompt
    no_checkpoint,  // something longer does, but there is no checkpoint where the two part
    slower,         // to bring it back would take longer than to compute it
    whole_chunks,   // deterministic requests take whole chunks only
    no_room,        // one pool of cells had no room for all of the snapshot
    refused,        // the model did not take it
  };

  Source source = Source::none;
  Limit limit = Limit::off;
  TokenCount entry = 0;  // tokens of the snapshot that was used
  TokenCount known = 0;  // tokens of the prompt that the cache had, in whatever it is
};

inline std::string_view name(CacheUse::Source source) {
  constexpr std::string_view kNames[] = {"none", "memory", "checkpoint", "disk", "slot"};
  return kNames[static_cast<std::size_t>(source)];
}
inline std::string_view name(CacheUse::Limit limit) {
  constexpr std::string_view kNames[] = {"off",    "whole_prompt", "differs", "no_checkpoint",
                                         "slower", "whole_chunks", "no_room", "refused"};
  return kNames[static_cast<std::size_t>(limit)];
}

}  // namespace chasqui
