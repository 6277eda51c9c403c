// The draft models of `chasqui serve`: one context for each worker, of a small model that must speak the same tokens as
// the large one. At start only.
#pragma once

#include "app/config.h"
#include "engine/engine.h"
#include "model/loaded_model.h"

namespace chasqui {

// None where nobody asked for one. `part` is what each worker's large model is made with. Errors name the flag.
Result<Models> make_drafts(const ServeConfig& config, const LoadedModel& model, const ModelConfig& part);

}  // namespace chasqui
