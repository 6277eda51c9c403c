// GET /debug/sequences: the sequences that run and wait, of all models or of the one that the query names, for the
// operator (chasqui top). From what the loop knows of its requests and from the boards of the slots, so no worker is
// asked. Loop thread.
#pragma once

#include "api/core/call.h"

namespace chasqui {

// 403 for clients that may not see what concerns others, see KeyRing::may_watch().
Handled handle_sequences(const ModelTable& models, Call call);

}  // namespace chasqui
