// Who has what after a step, in a recording, for readers that have no scheduler. Pure.
#pragma once

#include "record/byte_stream.h"
#include "sched/occupancy.h"

namespace chasqui {

template <class Io, class AnyOccupancy>
void pass_occupancy(Io& io, AnyOccupancy& occupancy) {
  io(occupancy.running);
  for (auto& requests : occupancy.waiting) io(requests);
  for (auto& requests : occupancy.streams) io(requests);
  io(occupancy.cells);
}

}  // namespace chasqui
