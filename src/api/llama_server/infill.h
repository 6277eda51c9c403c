// POST /infill: text with a gap that the model fills in (api/body/gap_tokens). Any thread; `served` is only read.
#pragma once

#include <string>

#include "api/core/answer.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"

namespace chasqui {

// llama-server's /infill: input_prefix, input_suffix, input_extra, prompt, and all of /completion but its prompt.
Result<Answer> prepare_infill(const ServedModel& served, const Caller& caller, const std::string& body);

}  // namespace chasqui
