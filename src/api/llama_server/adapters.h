// GET and POST /lora-adapters, as llama-server has them: what is loaded, and what requests get that say nothing. Loop.
#pragma once

#include "api/core/call.h"

namespace chasqui {

Handled handle_adapters(Call call);
Handled handle_set_adapters(Call call);

}  // namespace chasqui
