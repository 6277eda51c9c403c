// The commands of sessions (docs/sessions.md), the same at every door, and their HTTP routes: POST and GET
// /v1/sessions, GET and DELETE /v1/sessions/{id}, and POST …/append, …/generate, …/cancel, …/fork. What a client says
// is read in the offload pool while the session is taken, so that two commands never meet in one; the table changes on
// the loop. Loop thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "api/core/answer.h"
#include "api/core/served_model.h"
#include "engine/moved_answer.h"
#include "engine/session_table.h"

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
  std::optional<MovedAnswer> moved{};  // that a generation goes on with
  std::string said{};                  // its body, or that of the one it goes on with
};

// Null: no model has a session of this tenant with this id.
ServedModel* model_of_session(const ModelTable& models, std::uint32_t tenant, const SessionId& id);

// … and, where nodes share sessions, of any node: brings it here. An error: it cannot be known.
net::Awaitable<Result<ServedModel*>> find_shared_session(const ModelTable& models, Tenant tenant, SessionId id);

// Answers are the JSON of the session.
net::Awaitable<Result<std::string>> create_session(Frontend& frontend, ServedModel& served, SessionCall call);
net::Awaitable<Result<std::string>> append_to_session(Frontend& frontend, ServedModel& served, SessionCall call);
// Takes the session and a permit, and makes the request; `use` is spent when the engine has it.
net::Awaitable<Result<Answer>> prepare_in_session(Frontend& frontend, ServedModel& served, SessionCall call,
                                                  std::optional<SessionUse>& use, Permit& permit);

// Commands that need nothing from the pool.
using SessionCommand = Result<std::string> (*)(ServedModel&, SessionCall&);
// Runs one; what it changed is safe, where sessions are kept in a folder, before anybody is told.
net::Awaitable<Result<std::string>> run_session_command(ServedModel& served, SessionCall call, SessionCommand command);
Result<std::string> list_sessions(ServedModel& served, SessionCall& call);
Result<std::string> show_session(ServedModel& served, SessionCall& call);
Result<std::string> cancel_session(ServedModel& served, SessionCall& call);
Result<std::string> fork_session(ServedModel& served, SessionCall& call);
Result<std::string> end_session(ServedModel& served, SessionCall& call);

Handled handle_create_session(Call call);
Handled handle_append(Call call);
// Answers like /v1/chat/completions in a chat and like /v1/completions in a text.
Handled handle_session_generate(Call call);
Handled handle_session_command(Call call, SessionCommand command);

}  // namespace chasqui
