// Included in a copy of ggml's ops.cpp (flash_tiles.cmake), behind its kernel for tiles of rows and before what calls it.
// Rows come out the same whatever tile they are in: each is summed in the same order.
#pragma once

static constexpr int chasqui_small_tile = 16;

// Rows [ir0, ir1) of all heads, as the kernel takes them: in large tiles, and what is left of a head or of the range in
// small ones. Two small tiles cost less than a large one with empty rows in it, three cost more.
static void chasqui_flash_attn_tiles(const ggml_compute_params * params, ggml_tensor * dst, int ir0, int ir1) {
  constexpr int large = GGML_FA_TILE_Q;
  const int of_a_head = (int)dst->src[0]->ne[1];
  for (int ir = ir0; ir < ir1;) {
    const int end = MIN(ir1, ir + of_a_head - ir % of_a_head);
    const int over = (end - ir) % large;
    const int split = over > 2 * chasqui_small_tile ? end : end - over;
    if (split > ir) ggml_compute_forward_flash_attn_ext_tiled<large>(params, dst, ir, split);
    if (end > split) ggml_compute_forward_flash_attn_ext_tiled<chasqui_small_tile>(params, dst, split, end);
    ir = end;
  }
}
