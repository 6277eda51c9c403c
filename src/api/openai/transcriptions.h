// POST /v1/audio/transcriptions: what a sound says, by a model whose projector hears. Clients send a form with the
// file; it becomes JSON before the route is entered, so that all that is done for a route (the model that it names,
// retries, quotas) is done for it. The sound is asked about in a chat, in the words of llama-server.
#pragma once

#include <string>
#include <string_view>

#include "api/core/answer.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"

namespace chasqui {

// {"file": base64, …}: fields are what they say, numbers and booleans among them. Offload pool. Errors of the form.
Result<std::string> json_of_form(std::string_view body, const std::string& boundary);

// Where the body is such a form, by its Content-Type, it becomes that JSON.
net::Awaitable<Result<void>> read_form_as_json(Frontend& frontend, Caller caller, net::HttpExchange& exchange,
                                               std::string& body);

Result<Answer> prepare_transcription(const ServedModel& served, const Caller& caller, const std::string& body);

}  // namespace chasqui
