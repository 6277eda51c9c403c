// What a recording says of a model before its workers begin. Pure; at start, and on the thread that loads a model
// later.
#pragma once

#include "app/model_parts.h"
#include "record/recorded_head.h"

namespace chasqui {

// All but the worker and what its scheduler is made with. REQUIRES: the parts have not begun
RecordedHead recorded_head(const ModelParts& parts);

}  // namespace chasqui
