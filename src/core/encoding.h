// What a Scheduler orders of pictures and sounds, and what came of it. A unit of a prompt is encoded by a thread of
// its own (engine/media_encodings) before the unit's rows are planned, so that no step of others waits for it. Plain
// values.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "core/request.h"
#include "core/types.h"

namespace chasqui {

struct EncodingOrder {
  RequestPtr request;
  TokenCount begin = 0;  // of the unit, in its prompt
};

struct EncodingOutcome {
  RequestId request;
  TokenCount begin = 0;
  bool fresh = false;  // it was not kept from before
  bool read = false;   // it was kept in a file
  Duration took{};
  std::optional<Error> error{};
  std::shared_ptr<const void> rows{};  // for as long as this is held, they are not encoded again
};

}  // namespace chasqui
