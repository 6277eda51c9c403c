// The answer of a generation in a session, with what goes with it: it is kept before its end is told, and where nodes
// share sessions another node may go on with it. Where the shared store does not take what that node would need, the
// answer goes on here, from the token at which it has stopped. Loop thread.
#pragma once

#include <optional>
#include <string>

#include "api/core/answer.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "api/session/session_body.h"
#include "engine/moved_answer.h"
#include "engine/session_table.h"

namespace chasqui {

struct SessionAsker {
  Frontend& frontend;
  ServedModel& served;
  Caller caller;
  std::string body;  // what was asked
};

// Before anybody is told of what has just happened.
net::Awaitable<Result<void>> kept(ServedModel& served, const SessionId& id);
// Both in memory and on disk, or neither.
net::Awaitable<Result<void>> kept_or_taken_back(ServedModel& served, SessionMark before);

// What the client is told that asked for the move; `why` itself is for the log.
Error stays_here(const Error& why);

// Its request: the prompt is the history, and what stands before the answer. `moved`: of which another node has told
// the beginning. `use` outlives Answer::on_submitted, which spends it.
Result<Answer> answer_in_session(const SessionAsker& asker, const std::optional<MovedAnswer>& moved, SessionAsk ask,
                                 SessionUse& use);

}  // namespace chasqui
