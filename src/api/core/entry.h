// How a request comes in, when its body is there and before that is parsed: a permit of its model's admission, and its
// terms in the offload pool. Loop thread.
#pragma once

#include <string_view>

#include "api/core/call.h"
#include "engine/admission.h"
#include "net/offload.h"

namespace chasqui {

// A permit for this request, by whose it is and a hash of its body; errors are admission's.
Result<Permit> enter(const Frontend& frontend, ServedModel& served, const Caller& caller, std::string_view path,
                     std::string_view body);
Result<Permit> enter(const Call& call);

// For a request that takes no slot, such as one that counts tokens: it has a quota of its own.
Result<Permit> enter_aside(const Frontend& frontend, ServedModel& served, const Caller& caller);
Result<Permit> enter_aside(const Call& call);

// What the offload pool is told of the reading of a body.
net::OffloadTerms reading_terms(const Caller& caller, std::string_view body);
// The same, as long as the client is there.
net::OffloadTerms reading_terms(const Call& call);

}  // namespace chasqui
