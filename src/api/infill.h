// Text with a gap that the model fills in: POST /infill, and `suffix` of completions. Only for models whose vocabulary
// has the tokens for it. Any thread; `service` is only read.
#pragma once

#include <string_view>
#include <vector>

#include "api/answer.h"
#include "api/key_ring.h"
#include "api/service.h"

namespace chasqui {

// What comes before the gap, and what comes after it. Errors name `suffix`.
Result<std::vector<Token>> around_gap(const Service& service, std::vector<Token> prefix, std::string_view suffix);

// llama-server's /infill: input_prefix, input_suffix, input_extra, prompt, and all of /completion but its prompt.
Result<Answer> prepare_infill(const Service& service, const Caller& caller, const std::string& body);

}  // namespace chasqui
