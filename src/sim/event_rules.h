// What the events of one request must say, in which order. A function over a record of the simulation; one thread.
#pragma once

#include "core/event.h"
#include "sim/faults.h"
#include "sim/sim_request.h"

namespace chasqui {

// Checks the next event of this request and writes down in `life` what it told. `step` is the last one that began.
void check_event(const Event& event, SimRequest& life, std::uint64_t step, TimePoint now, Faults& faults);

}  // namespace chasqui
