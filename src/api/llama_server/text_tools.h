// POST /tokenize, /detokenize and /apply-template: what the model's vocabulary and template make of a text. The
// functions are pure and run in the offload pool; each takes the request's body and gives the answer's.
#pragma once

#include <string>

#include "api/core/call.h"
#include "api/core/served_model.h"

namespace chasqui {

Result<std::string> tokenize_answer(const ServedModel& served, const std::string& body);
Result<std::string> detokenize_answer(const ServedModel& served, const std::string& body);
Result<std::string> apply_template_answer(const ServedModel& served, const std::string& body);
// Of a chat: {"input_tokens":N}
Result<std::string> count_chat_input(const ServedModel& served, const std::string& body);

using TextTool = Result<std::string> (*)(const ServedModel&, const std::string&);

Handled handle_text_tool(Call call, TextTool tool);

}  // namespace chasqui
