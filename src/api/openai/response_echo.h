// What a response of /v1/responses repeats of its request. Pure; offload pool.
#pragma once

#include <string>

#include <boost/json.hpp>

#include "base/error.h"
#include "core/sampling.h"

namespace chasqui {

// Members of the response object, each with a comma before it. Errors name the field that is too long to be repeated.
Result<std::string> echo_of(const boost::json::object& body, const SamplingParams& sampling, bool stored);

}  // namespace chasqui
