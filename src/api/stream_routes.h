// Routes of resumable streams, as llama-server has them: GET and DELETE /v1/stream?conv_id=, POST /v1/streams/lookup.
// And the start of one. Loop thread.
#pragma once

#include "api/kept_streams.h"

namespace chasqui {

// Delivers an answer that streams and is kept under `id`; with a Last-Event-ID it goes on with the one that is there.
net::Awaitable<void> deliver_kept(Service& service, net::HttpExchange& exchange, std::string id, Answer answer,
                                  Permit permit);

// `from` counts bytes, as ids of events do; Last-Event-ID says the same.
net::Awaitable<void> handle_stream(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_stop_stream(Service& service, net::HttpExchange& exchange);
// Tells only about streams whose names the caller knows.
net::Awaitable<void> handle_stream_lookup(Service& service, net::HttpExchange& exchange);

}  // namespace chasqui
