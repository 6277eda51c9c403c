// Included before ops.cpp and ggml-cpu.c by force (CMakeLists.txt), so that the source stays as it was fetched: ggml's
// fast kernel for flash attention works on tiles of so many rows of a prompt, and batches of fewer rows get the slow
// one. A tile of 64 makes a chunk of 48 rows take longer than one of 64; with 16, chunks that are short enough for
// streams to wait for cost hardly more for each row than long ones. bench/README.md has the figures.
#pragma once

#define ggml_fa_tile_config chasqui_fa_tile_config_as_fetched
#include "common.h"  // of ggml-cpu
#undef ggml_fa_tile_config

#undef GGML_FA_TILE_Q
#define GGML_FA_TILE_Q 16

#ifdef __cplusplus
struct ggml_fa_tile_config {
  static constexpr size_t Q = GGML_FA_TILE_Q;
  static constexpr size_t KV = GGML_FA_TILE_KV;
};
#endif
