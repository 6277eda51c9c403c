// How an answer gets to its connection, the same for every dialect: streamed or as one body, with comments while it is
// silent where its writer has them; or as a stream that is kept, which other connections may go on with. Loop thread.
#pragma once

#include "api/core/answer.h"
#include "api/core/call.h"
#include "api/delivery/kept_streams.h"

namespace chasqui {

// Submits the request, which admission weighs first and may still refuse.
Handled deliver_answer(Call call, Answer answer, Permit permit);

// The same for what the pool has prepared, or refused; nothing where the client has left meanwhile.
Handled deliver_prepared(Call call, Result<Answer> answer, RequestNotePtr note, Permit permit);

// The kept stream that a request with Last-Event-ID goes on with; null: none.
KeptStreamPtr stream_gone_on_with(const Call& call);
// Goes on with a kept stream from where the request says: `from`, or Last-Event-ID.
Handled resume_stream(Frontend& frontend, net::HttpExchange& exchange, KeptStreamPtr stream);

// The handler of all routes that generate but sessions and /v1/responses: a permit, the body, the answer.
Handled handle_generation(Call call, PrepareAnswer prepare);

}  // namespace chasqui
