// POST /models/load and /models/unload: what administrators tell the loader of models. Loop thread.
#pragma once

#include "api/core/call.h"

namespace chasqui {

Handled handle_load_model(const ModelTable& models, Call call);
Handled handle_unload_model(const ModelTable& models, Call call);

}  // namespace chasqui
