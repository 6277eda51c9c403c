// Where a reader goes on with a stream that is kept: the number that it sends, held against what is left. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/delivery/stream_ring.h"
#include "base/error.h"

namespace chasqui {

// `text` is what the client said in `field`. Errors: no number, one that is not reached yet (400), one whose bytes have
// been overwritten (409).
Result<std::uint64_t> read_stream_offset(std::string_view text, const std::string& field, const StreamRing& ring);

}  // namespace chasqui
