// Makes the model end its reasoning when it has thought for long enough: llama-common's sampler for that, put in front
// of a request's grammar, where our Sampler asks which tokens may come. Offload pool; what it makes is for the worker.
#pragma once

#include "core/sampling.h"
#include "model/reasoning_limit.h"
#include "model/sampling_parts.h"
#include "model/tokenizer.h"

namespace chasqui {

// `grammar` may be absent. While the end of the reasoning is being said the grammar is not asked.
GrammarGate limit_reasoning(GrammarGate grammar, const ReasoningLimit& limit, const Tokenizer& tokenizer);

// The same for what a request has been given; `parts` may be null.
SamplingPartsPtr limit_reasoning(SamplingPartsPtr parts, const ReasoningLimit& limit, const Tokenizer& tokenizer);

}  // namespace chasqui
