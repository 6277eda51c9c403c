// The generating routes of this version: POST /v1/chat/completions and /v1/completions in OpenAI's shape, and
// POST /generate, whose stream is `data: {"text":…}`. Any thread; `served` is only read.
#pragma once

#include <string>

#include "api/core/answer.h"
#include "api/core/served_model.h"

namespace chasqui {

Result<Answer> prepare_chat(const ServedModel& served, const Caller& caller, const std::string& body);
Result<Answer> prepare_completion(const ServedModel& served, const Caller& caller, const std::string& body);
Result<Answer> prepare_generate(const ServedModel& served, const Caller& caller, const std::string& body);

}  // namespace chasqui
