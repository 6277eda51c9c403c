// The bodies of the sessions' routes, both ways: what a client says about a session and to it, and how sessions are
// shown. Pure; the readers tokenize and belong in the offload pool, `served` is only read.
#pragma once

#include <optional>
#include <string>

#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "api/openai/openai_body.h"
#include "engine/session_input.h"
#include "engine/session_table.h"

namespace chasqui {

// POST /v1/sessions
struct NewSession {
  SessionSettings settings;
  SessionDelta begin;
};
// `limits`: of the table, which belongs to the loop.
Result<NewSession> read_new_session(const ServedModel& served, const Caller& caller, const SessionLimits& limits,
                                    const std::string& body);

// POST /v1/sessions/{id}/append
Result<SessionDelta> read_append(const ServedModel& served, const SessionTail& tail, const std::string& body);

// POST /v1/sessions/{id}/generate
struct SessionAsk {
  OpenAiBody common;  // without the prompt
  SessionDelta before_answer;
  MediaUnits units;  // of the history, not in their places yet
};
Result<SessionAsk> read_session_ask(const ServedModel& served, const Caller& caller, const SessionTail& tail,
                                    ServiceClass service_class, const std::string& body);

SessionTail tail_of(const SessionTable& table, const Session& session);
std::string session_body(const ServedModel& served, const Session& session);
std::string session_list_body(const ServedModel& served, const std::vector<const Session*>& sessions, bool more);
std::string session_deleted_body(const SessionId& id);

}  // namespace chasqui
