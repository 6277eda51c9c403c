// POST /v1/sessions/{id}/move, and what goes with an answer that moves: this node stops it at a token and leaves in the
// shared store what was asked, what was generated, what its stream has told, and the KV; the node that the client comes
// back to, with its request and Last-Event-ID, goes on. Nothing of the answer is in the session until it has ended. It
// stops only where the store takes something, and goes on here where it then does not (api/session/session_answer).
// Loop thread.
#pragma once

#include <optional>

#include "api/core/answer.h"
#include "api/delivery/kept_streams.h"
#include "api/session/session_body.h"
#include "api/session/session_sharing.h"
#include "net/event_loop.h"

namespace chasqui {

Handled handle_move_session(Call call);
// Of a node that drains: all that can.
void move_all_answers(net::EventLoop& loop, KeptStreams& kept, ServedModel& served);

// The answer that this request goes on with, which another node has begun; nothing: there is none to this `body`.
// conflict: the client has read further than that, or so little that what it lacks is not kept.
net::Awaitable<Result<std::optional<MovedAnswer>>> moved_answer_of(ServedModel& served, const net::HttpRequest& request,
                                                                   const Caller& caller, SessionId id,
                                                                   std::string body);

}  // namespace chasqui
