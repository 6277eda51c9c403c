// Included before ggml-cpu.c by force (CMakeLists.txt), so that the source stays as it was fetched: where ggml's compute
// threads wait for each other, at the barrier after each operation and for the next graph, they let others run now and
// then. Without it a thread spins through its whole time slice while the one it waits for stands in the queue of the
// same core; docs/threads.md has the figures.
#pragma once

#include <sched.h>

// The definition, ggml_thread_cpu_relax(void), becomes chasqui_relax_void(); calls, without an argument,
// become chasqui_relax_().
#define ggml_thread_cpu_relax(nothing) chasqui_relax_##nothing()

static inline void chasqui_relax_void(void);

// About every 3 µs of waiting on x86. Neither a clock nor the beginning of the wait is needed: what matters is that a
// thread that waits for long yields often, and one that waits shortly yields rarely.
static inline void chasqui_relax_(void) {
  enum { pauses = 128 };
  static _Thread_local unsigned count;
  chasqui_relax_void();
  if (++count % pauses == 0) sched_yield();
}
