// The fields that every generating route shares (sampling, stop strings, limits, class), in the names of OpenAI and
// llama-server, read into a RequestDraft. Ranges are checked once, in make_request(). Pure; offload pool.
#pragma once

#include "api/fields.h"
#include "core/request.h"
#include "model/model_info.h"

namespace chasqui {

// Defaults of the server: llama-server's, changed by what the model's author recommends.
SamplingParams default_sampling(const ModelInfo& info);

// `draft` already holds the defaults; mistakes are left in `fields`.
void read_generation_fields(Fields& fields, RequestDraft& draft);

// `priority`, or OpenAI's `service_tier`.
ServiceClass read_class(Fields& fields, ServiceClass unsaid);

// Fields that this route has not got yet must not be ignored silently: a client that asks for logprobs and gets none
// would believe that there are none. Complains about each of `names` that is there with anything but null, false, or
// an empty value.
void refuse_unsupported(Fields& fields, std::initializer_list<std::string_view> names);

}  // namespace chasqui
