// The routes of sessions (docs/sessions.md): POST and GET /v1/sessions, GET and DELETE /v1/sessions/{id}, and POST
// …/append, …/generate, …/cancel, …/fork. What a client says is read in the offload pool while the session is taken, so
// that two commands never meet in one; the table changes on the loop. Loop thread.
#pragma once

#include "api/service.h"
#include "net/exchange.h"

namespace chasqui {

net::Awaitable<void> handle_create_session(Service& service, net::HttpExchange& exchange);
net::Awaitable<void> handle_append(Service& service, net::HttpExchange& exchange);
// Answers like /v1/chat/completions in a chat and like /v1/completions in a text.
net::Awaitable<void> handle_session_generate(Service& service, net::HttpExchange& exchange);

// Commands that need nothing from the pool.
using SessionCommand = Result<std::string> (*)(Service&, const Caller&, const net::HttpExchange&);
net::Awaitable<void> handle_session_command(Service& service, net::HttpExchange& exchange, SessionCommand command);
Result<std::string> list_sessions(Service& service, const Caller& caller, const net::HttpExchange& exchange);
Result<std::string> show_session(Service& service, const Caller& caller, const net::HttpExchange& exchange);
Result<std::string> cancel_session(Service& service, const Caller& caller, const net::HttpExchange& exchange);
Result<std::string> fork_session(Service& service, const Caller& caller, const net::HttpExchange& exchange);
Result<std::string> end_session(Service& service, const Caller& caller, const net::HttpExchange& exchange);

}  // namespace chasqui
