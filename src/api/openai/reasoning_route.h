// POST /v1/chat/completions/control: ends the reasoning of an answer while it runs, see ReasoningSwitches. Loop thread.
#pragma once

#include "api/core/call.h"

namespace chasqui {

Handled handle_control(const ModelTable& models, Call call);

}  // namespace chasqui
