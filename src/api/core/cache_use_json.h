// What the prefix cache has decided for a sequence, as clients and operators see it. Any thread.
#pragma once

#include "base/json_writer.h"
#include "core/cache_use.h"

namespace chasqui {

// `cached`: tokens of the prompt that were not computed. Those that the cache knew and that were computed all the same
// are `recomputed`.
inline void write_cache_use(JsonWriter& json, const CacheUse& use, TokenCount cached) {
  json.begin_object();
  json.field("source", name(use.source));
  json.field("entry_tokens", use.entry);
  json.field("limit", name(use.limit));
  json.field("known_tokens", use.known);
  json.field("recomputed_tokens", use.known > cached ? use.known - cached : 0);
  json.end_object();
}

}  // namespace chasqui
