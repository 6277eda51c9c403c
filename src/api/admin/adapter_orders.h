// POST /v1/load_lora_adapter and /v1/unload_lora_adapter, as vLLM has them: what administrators tell the loader of
// adapters. Loop thread.
#pragma once

#include "api/core/call.h"

namespace chasqui {

struct Node;

Handled handle_load_adapter(const Node& node, Call call);
Handled handle_unload_adapter(const Node& node, Call call);

}  // namespace chasqui
