// Chooses, before main, which variant of ggml's CPU backend runs: the binary holds several, each compiled for other
// features of the processor (join.cmake). The most capable one whose features the processor and the system have, or the
// one that CHASQUI_CPU_VARIANT names. The functions of the backend jump through chosen_cpu_functions (stubs.S).
#include <cpuid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "variants.h"  // of join.cmake: VARIANTS, FUNCTIONS, functions_of_NAME

__attribute__((visibility("hidden"))) void *chosen_cpu_functions[FUNCTIONS];

// What each is compiled with: cmake/CpuFeatures.cmake. Not every compiler can ask for F16C: no processor has AVX2
// without it.
static int runs_v2(void) { return __builtin_cpu_supports("sse4.2") != 0; }
static int runs_v3(void) {
  return runs_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
// Bit 4 of EAX of leaf 7.1: older clang cannot ask for it.
static int runs_v3_vnni(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return runs_v3() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) != 0;
}
static int runs_v4(void) {
  return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
static int runs_v4_vnni(void) { return runs_v4() && __builtin_cpu_supports("avx512vnni"); }
static int runs_v4_bf16(void) {
  return runs_v4_vnni() && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bf16");
}

struct variant {
  const char *name;
  int (*runs)(void);
  void *const *functions;
};

// The least capable first.
#define VARIANT(name) {#name, runs_##name, functions_of_##name},
static const struct variant variants[] = {VARIANTS(VARIANT)};
enum { COUNT = sizeof variants / sizeof *variants };

static void refuse(const char *why, const char *wanted) {
  fprintf(stderr, "CHASQUI_CPU_VARIANT=%s: %s; allowed here are", wanted, why);
  for (int i = 0; i < COUNT; ++i) {
    if (variants[i].runs()) fprintf(stderr, " %s", variants[i].name);
  }
  fprintf(stderr, "\n");
  _exit(2);
}

// Before the constructors of C++, which may call the backend.
__attribute__((constructor(101))) static void choose(void) {
  __builtin_cpu_init();
  const char *wanted = getenv("CHASQUI_CPU_VARIANT");
  if (wanted != NULL && *wanted == 0) wanted = NULL;
  const struct variant *chosen = NULL;
  for (int i = 0; i < COUNT; ++i) {
    const int named = wanted != NULL && strcmp(variants[i].name, wanted) == 0;
    if (named && !variants[i].runs()) refuse("this processor lacks what it was compiled for", wanted);
    if (named || (wanted == NULL && variants[i].runs())) chosen = &variants[i];
  }
  if (wanted != NULL && chosen == NULL) refuse("there is no such variant", wanted);
  if (chosen == NULL) {
    fputs("This processor has no SSE4.2, which this build needs: build on this machine.\n", stderr);
    _exit(2);
  }
  memcpy(chosen_cpu_functions, chosen->functions, sizeof chosen_cpu_functions);
}
