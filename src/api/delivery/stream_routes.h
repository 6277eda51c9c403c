// Routes of resumable streams, as llama-server has them: GET and DELETE /v1/stream?conv_id=, POST /v1/streams/lookup.
// Loop thread.
#pragma once

#include <string>
#include <vector>

#include "api/core/call.h"
#include "base/error.h"

namespace chasqui {

// `from` counts bytes, as ids of events do; Last-Event-ID says the same.
Handled handle_stream(Call call);
Handled handle_stop_stream(Call call);
// Tells only about streams whose names the caller knows.
Handled handle_stream_lookup(Call call);
// The names that its body asks about, but those that are longer than any. Pure; any thread.
Result<std::vector<std::string>> read_stream_lookup(const std::string& body);

}  // namespace chasqui
