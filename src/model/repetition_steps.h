// The steps of sampling that look back at what was said: penalties, and DRY, which makes a token less likely the longer
// the repetition is that it would go on with. They do what libllama's do, for a chain of its samplers, but take memory
// for the tokens that there are, not for those that a request wishes to look back at, and DRY takes the same time for
// each token whatever ends a repetition.
#pragma once

#include "core/sampling.h"
#include "model/dry_breakers.h"

struct llama_sampler;

namespace chasqui {

bool penalties_on(const SamplingParams& params);

// Null where the parameters turn the step off.
llama_sampler* make_penalties_step(const SamplingParams& params);
// `breakers` may be null: nothing ends a repetition.
llama_sampler* make_dry_step(const SamplingParams& params, DryBreakersPtr breakers);

}  // namespace chasqui
