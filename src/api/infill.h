// Text with a gap that the model fills in: POST /infill, and `suffix` of completions. Only for models whose vocabulary
// has the tokens for it. Any thread; `served` is only read.
#pragma once

#include <string_view>
#include <vector>

#include "api/answer.h"
#include "api/key_ring.h"
#include "api/served_model.h"

namespace chasqui {

// What comes before the gap, and what comes after it. Errors name `suffix`.
Result<std::vector<Token>> around_gap(const ServedModel& served, std::vector<Token> prefix, std::string_view suffix);

// llama-server's /infill: input_prefix, input_suffix, input_extra, prompt, and all of /completion but its prompt.
Result<Answer> prepare_infill(const ServedModel& served, const Caller& caller, const std::string& body);

}  // namespace chasqui
