// The commands of sessions (docs/sessions.md), the same at every door, and their HTTP routes: POST and GET
// /v1/sessions, GET and DELETE /v1/sessions/{id}, and POST …/append, …/generate, …/cancel, …/fork. What a client says
// is read in the offload pool while the session is taken, so that two commands never meet in one; the table changes on
// the loop. Loop thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "api/answer.h"
#include "api/service.h"
#include "net/exchange.h"

namespace chasqui {

// Who asks for what, whatever the door.
struct SessionCall {
  Caller caller;
  SessionId id;
  std::string path;  // tells calls of different kinds apart when they come again
  std::string body;
  std::optional<std::string> limit, after;  // of a list
  std::function<bool()> client_gone;
  std::optional<SessionId> made;  // by the command: goes again when it cannot be kept
};

// Answers are the JSON of the session.
net::Awaitable<Result<std::string>> create_session(Service& service, SessionCall call);
net::Awaitable<Result<std::string>> append_to_session(Service& service, SessionCall call);
// Takes the session and a permit, and makes the request; `use` is spent when the engine has it.
net::Awaitable<Result<Answer>> prepare_in_session(Service& service, SessionCall call, std::optional<SessionUse>& use,
                                                  Permit& permit);

// Commands that need nothing from the pool.
using SessionCommand = Result<std::string> (*)(Service&, SessionCall&);
// Runs one; what it changed is safe, where sessions are kept in a folder, before anybody is told.
net::Awaitable<Result<std::string>> run_session_command(Service& service, SessionCall call, SessionCommand command);
Result<std::string> list_sessions(Service& service, SessionCall& call);
Result<std::string> show_session(Service& service, SessionCall& call);
Result<std::string> cancel_session(Service& service, SessionCall& call);
Result<std::string> fork_session(Service& service, SessionCall& call);
Result<std::string> end_session(Service& service, SessionCall& call);

net::Awaitable<void> handle_create_session(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_append(Service& service, net::HttpExchange& exchange);
// Answers like /v1/chat/completions in a chat and like /v1/completions in a text.
net::Awaitable<void> handle_session_generate(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_session_command(Service& service, net::HttpExchange& exchange, SessionCommand command);

}  // namespace chasqui
