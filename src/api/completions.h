// The generating routes of this version: POST /v1/chat/completions and /v1/completions in OpenAI's shape, and
// POST /generate, whose stream is `data: {"text":…}`. Each reads its body in the offload pool, then hands over to
// deliver_answer(). Loop thread, except the prepare_* functions, which run on any thread and only read `service`.
#pragma once

#include <string>

#include "api/answer.h"
#include "api/service.h"
#include "net/exchange.h"

namespace chasqui {

Result<Answer> prepare_chat(const Service& service, const Caller& caller, const std::string& body);
Result<Answer> prepare_completion(const Service& service, const Caller& caller, const std::string& body);
Result<Answer> prepare_generate(const Service& service, const Caller& caller, const std::string& body);

// At least one request.
Answer answer_of(std::vector<RequestPtr> requests, bool stream, std::unique_ptr<AnswerWriter> writer);

using PrepareAnswer = Result<Answer> (*)(const Service&, const Caller&, const std::string&);

// A permit for this request, before its body is taken and read; errors are admission's.
Result<Permit> enter(Service& service, const Caller& caller, std::string_view path, std::string_view body);

// By how much the reading of a body lets others pass: a hundred times what it takes, so that a person's question does
// not stand behind a batch of long ones that came just before it; 1 s at most.
Duration reading_can_wait(std::size_t body_bytes);

// The handler of all of them.
net::Awaitable<void> handle_generation(Service& service, net::HttpExchange& exchange, PrepareAnswer prepare);

}  // namespace chasqui
