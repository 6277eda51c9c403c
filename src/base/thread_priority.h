// How the system shares processors between the threads of the process where there are more threads than processors.
#pragma once

namespace chasqui {

// The calling thread gets about a quarter of a processor that another thread wants, in slices short enough that it
// still starts soon. For work that has to be done soon but not at the cost of a decode step, in which all compute
// threads wait for the slowest. Where the system cannot, nothing changes.
void yield_to_compute_threads();

}  // namespace chasqui
