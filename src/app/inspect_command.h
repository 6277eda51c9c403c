// `chasqui inspect` and `chasqui doctor`: from flags to questions, and what cli says of them. The calling thread.
#pragma once

#include "app/config.h"

namespace chasqui {

// 0; 1 when the model cannot be read.
int run_inspect(ServeConfig config, bool json);
// 0; 1 when something stands in the way.
int run_doctor(const ServeConfig& config, bool json);

}  // namespace chasqui
