// Anthropic's dialect: POST /v1/messages and /v1/messages/count_tokens. Bodies become a Chat, so that everything else
// is shared with the other chat routes. The prepare functions run on any thread and only read `served`; a writer
// belongs to the loop, but for long bodies, which it writes in the offload pool.
#pragma once

#include <string>

#include "api/body/fields.h"
#include "api/core/answer.h"
#include "api/core/served_model.h"
#include "model/chat_template.h"

namespace chasqui {

Result<Answer> prepare_messages(const ServedModel& served, const Caller& caller, const std::string& body);
// {"input_tokens":N}
Result<std::string> count_message_tokens(const ServedModel& served, const std::string& body);

// Reads `system`, `messages`, `tools`, `tool_choice` and `thinking`; mistakes are left in `fields`.
Chat read_anthropic_chat(Fields& fields, const RequestDefaults& defaults, const MediaReader* media);

std::unique_ptr<AnswerWriter> make_message_writer(std::string id, std::string model, TokenCount prompt,
                                                  AnswerFormatPtr format);

extern const Dialect kAnthropic;
// {"type":"error","error":{"type":"invalid_request_error","message":…}}
std::string anthropic_error_body(int status, std::string_view message);
std::string anthropic_error_body(const Error& error);

}  // namespace chasqui
