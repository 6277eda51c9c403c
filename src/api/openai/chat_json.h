// The JSON of /v1/chat/completions where an answer has parts: reasoning, content and tool calls. Answers that are
// content alone are written by openai_json. Loop thread.
#pragma once

#include "api/openai/openai_json.h"
#include "model/answer_parser.h"

namespace chasqui {

// REQUIRES: format
std::unique_ptr<AnswerWriter> make_parts_writer(AnswerHead head, AnswerFormatPtr format);

}  // namespace chasqui
