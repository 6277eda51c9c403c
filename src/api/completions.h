// The generating routes of this version: POST /v1/chat/completions and /v1/completions in OpenAI's shape, and
// POST /generate, whose stream is `data: {"text":…}`. Each reads its body in the offload pool, then hands over to
// deliver_answer(). Loop thread, except the prepare_* functions, which run on any thread and only read `served`.
#pragma once

#include <string>

#include "api/answer.h"
#include "api/served_model.h"
#include "net/offload.h"

namespace chasqui {

Result<Answer> prepare_chat(const ServedModel& served, const Caller& caller, const std::string& body);
Result<Answer> prepare_completion(const ServedModel& served, const Caller& caller, const std::string& body);
Result<Answer> prepare_generate(const ServedModel& served, const Caller& caller, const std::string& body);

// At least one request.
Answer answer_of(std::vector<RequestPtr> requests, bool stream, std::unique_ptr<AnswerWriter> writer);

using PrepareAnswer = Result<Answer> (*)(const ServedModel&, const Caller&, const std::string&);

// A permit for this request, before its body is taken and read; errors are admission's.
Result<Permit> enter(const Frontend& frontend, ServedModel& served, const Caller& caller, std::string_view path,
                     std::string_view body);
Result<Permit> enter(const Call& call);

// For a request that takes no slot, such as one that counts tokens: it has a quota of its own.
Result<Permit> enter_aside(const Call& call);

// What the offload pool is told of the reading of a body. It lets others of the same tenant pass for a hundred times
// what it takes, so that a person's question does not stand behind a batch of long ones that came just before it; 1 s
// at most.
net::OffloadTerms reading_terms(const Caller& caller, std::size_t body_bytes);
// The same, as long as the client is there.
net::OffloadTerms reading_terms(const Call& call);

// The handler of all of them.
Handled handle_generation(Call call, PrepareAnswer prepare);

}  // namespace chasqui
