// How many slots, cells and threads to serve a model with when nobody said. Pure.
#pragma once

#include "model/model_config.h"
#include "model/model_info.h"

namespace chasqui {

// Fills in slots, cells, threads and rows_max where they are 0 or too small. What the user asked for is kept.
ModelConfig with_capacity(ModelConfig config, const ModelInfo& info);

}  // namespace chasqui
