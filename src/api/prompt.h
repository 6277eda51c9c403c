// From a client's text to a valid request: tokenizes, applies the template, calls make_request. Slow for long prompts
// (about 1 ms for 4 KB), so it belongs in the offload pool. Any thread; `service` is only read.
#pragma once

#include <string_view>

#include "api/fields.h"
#include "api/service.h"
#include "core/request.h"
#include "model/chat_template.h"

namespace chasqui {

// A draft with the server's defaults, and the caller's.
RequestDraft new_draft(const Service& service, const Caller& caller);

// Reads `messages`, `tools` and the template's switches. Mistakes are left in `fields`.
Chat read_chat(Fields& fields);

// Template → tokens → request.
Result<RequestPtr> request_from_chat(const Service& service, const Chat& chat, RequestDraft draft);
// A prompt as the completion routes take it: a string, or an array of token ids.
Result<RequestPtr> request_from_prompt(const Service& service, const boost::json::value& prompt, RequestDraft draft);

}  // namespace chasqui
