// The steps of sampling that depend on how likely all tokens are: typical-p, XTC and a temperature that follows the
// entropy. They leave the tokens that libllama's steps leave, and their weights, without sorting a vocabulary for each
// token: what one request may ask for is not to hold up the streams beside it. The tokens keep their order.
#pragma once

#include "core/sampling.h"

struct llama_sampler;

namespace chasqui {

// Null where the parameters turn the step off.
llama_sampler* make_typical_step(const SamplingParams& params);
llama_sampler* make_xtc_step(const SamplingParams& params);
// REQUIRES: params.dynatemp_range > 0
llama_sampler* make_dynamic_temperature_step(const SamplingParams& params);

}  // namespace chasqui
