// GET /debug/sequences: the sequences that run and wait, for the operator (chasqui top). From what the loop
// knows of its requests and from the board of the slots, so no worker is asked. Loop thread.
#pragma once

#include "api/core/call.h"

namespace chasqui {

// 403 for clients that may not see what concerns others, see KeyRing::may_watch().
Handled handle_sequences(Call call);

}  // namespace chasqui
