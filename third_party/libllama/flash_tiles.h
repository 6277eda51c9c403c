// Included in a copy of ggml's ops.cpp (flash_tiles.cmake), in front of what calls it: attention by tiles of rows that have
// the same keys, those of all heads of a group. A tile converts keys and values once for all of its rows. Each row is
// summed in the same order in every tile, of any size, so that its bits follow from the row alone.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

// Rows of a tile at most, and cells that it takes at a time: those that ggml plans memory for.
static constexpr int chasqui_tile_rows = GGML_FA_TILE_Q;
static constexpr int chasqui_tile_cells = GGML_FA_TILE_KV;
// So far ahead the next cells are fetched.
static constexpr int64_t chasqui_cells_ahead = 24;
// What the multiplication takes at once.
static constexpr int chasqui_step_rows = 4;

// Attention of one node, as a thread computes it.
class ChasquiAttention {
 public:
  ChasquiAttention(const ggml_compute_params * params, ggml_tensor * dst, float * scratch)
      : dst(dst), q(dst->src[0]), k(dst->src[1]), v(dst->src[2]), mask(dst->src[3]), sinks(dst->src[4]), dk(k->ne[0]),
        dv(v->ne[0]), heads(q->ne[2]), rows_of_head(q->ne[1]) {
    memcpy(&scale, (const float *)dst->op_params + 0, sizeof(float));
    memcpy(&max_bias, (const float *)dst->op_params + 1, sizeof(float));
    memcpy(&softcap, (const float *)dst->op_params + 2, sizeof(float));
    if (softcap != 0) scale /= softcap;
    queries = scratch + params->ith * floats(dk, dv);
    scores = queries + chasqui_tile_rows * dk;
    masks = scores + chasqui_tile_rows * chasqui_tile_cells;
    sums = masks + chasqui_tile_rows * chasqui_tile_cells;
    values = sums + chasqui_tile_rows * dv;
    keys = values + chasqui_tile_cells * dv;
  }

  // Of the scratch of each thread.
  static int64_t floats(int64_t dk, int64_t dv) {
    return chasqui_tile_rows * (dk + dv) + 2 * chasqui_tile_rows * chasqui_tile_cells +
           chasqui_tile_cells * (dk + dv) + CACHE_LINE_SIZE_F32;
  }
  // Heads whose keys are the same.
  static int64_t group(const ggml_tensor * q, const ggml_tensor * k, const ggml_tensor * v) {
    return k->ne[2] == v->ne[2] ? q->ne[2] / k->ne[2] : 1;
  }

  // Rows [first, first + count) of all heads, which have the same keys, over the cells [begin, end).
  void compute(int64_t first, int count, int64_t begin, int64_t end) {
    take_rows(first, count);
    for (int64_t cell = begin; cell < end; cell += chasqui_tile_cells) {
      const int cells = (int)MIN(chasqui_tile_cells, end - cell);
      if (mask && !take_masks(cell, cells)) continue;
      take_keys(cell, cells);
      score(cells);
      take_values(cell, cells);
      simd_gemm(sums, scores, values, padded, chasqui_tile_cells, (int)dv);
    }
    if (sinks && begin == 0) add_sinks();
  }

  // What was computed last, into the tensor.
  void write() {
    for (int i = 0; i < count; ++i) {
      float * sum = sums + i * dv;
      ggml_vec_scale_f32((int)dv, sum, total[i] == 0.0f ? 0.0f : 1.0f / total[i]);
      const int64_t place = at[i].stream * dst->ne[2] * dst->ne[1] + at[i].head + at[i].row * dst->ne[1];
      memcpy((char *)dst->data + place * dst->nb[1], sum, dst->nb[1]);
    }
  }

  // … or as parts that ggml adds up, of one row of each head.
  void write_parts(float * parts, int64_t stride) const {
    for (int i = 0; i < count; ++i) {
      float * part = parts + at[i].head * stride;
      part[0] = most[i];
      part[1] = total[i];
      memcpy(part + 2, sums + i * dv, dv * sizeof(float));
    }
  }

 private:
  struct Place {
    int64_t row, head, stream;
    float slope;
  };

  void take_rows(int64_t first, int rows) {
    count = rows;
    padded = (rows + chasqui_step_rows - 1) / chasqui_step_rows * chasqui_step_rows;
    for (int i = 0; i < count; ++i) {
      const int64_t index = first + i;
      at[i] = {index % rows_of_head, index / rows_of_head % heads, index / rows_of_head / heads, 1.0f};
      if (max_bias > 0.0f) at[i].slope = slope_of(at[i].head);
      const char * from = (const char *)q->data + at[i].row * q->nb[1] + at[i].head * q->nb[2] + at[i].stream * q->nb[3];
      memcpy(queries + i * dk, from, dk * sizeof(float));
    }
    memset(queries + count * dk, 0, (padded - count) * dk * sizeof(float));
    memset(sums, 0, padded * dv * sizeof(float));
    std::fill_n(total, padded, 0.0f);
    std::fill_n(most, padded, -INFINITY);
    const int64_t of_keys = heads / k->ne[2], of_values = heads / v->ne[2];
    const int64_t streams = q->ne[3];
    first_key = (const char *)k->data + at[0].head / of_keys * k->nb[2] + at[0].stream / (streams / k->ne[3]) * k->nb[3];
    first_value =
        (const char *)v->data + at[0].head / of_values * v->nb[2] + at[0].stream / (streams / v->ne[3]) * v->nb[3];
  }

  float slope_of(int64_t head) const {
    const uint32_t half = 1u << (uint32_t)floor(log2((double)heads));
    if (head < half) return powf(powf(2.0f, -max_bias / half), head + 1);
    return powf(powf(2.0f, -(max_bias / 2.0f) / half), 2 * (head - half) + 1);
  }

  static float most_of(const float * x) {
    float lanes[16];
    std::copy_n(x, 16, lanes);
    for (int i = 16; i < chasqui_tile_cells; i += 16) {
      for (int j = 0; j < 16; ++j) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    }
    for (int width = 8; width > 0; width /= 2) {
      for (int j = 0; j < width; ++j) lanes[j] = MAX(lanes[j], lanes[j + width]);
    }
    return lanes[0];
  }

  // False: no row sees any of the cells.
  bool take_masks(int64_t cell, int cells) {
    bool seen = false;
    for (int i = 0; i < count; ++i) {
      const char * row = (const char *)mask->data + at[i].row * mask->nb[1] + at[i].head % mask->ne[2] * mask->nb[2] +
                         at[i].stream % mask->ne[3] * mask->nb[3];
      float * out = masks + i * chasqui_tile_cells;
      ggml_cpu_fp16_to_fp32((const ggml_fp16_t *)row + cell, out, cells);
      if (at[i].slope != 1.0f) ggml_vec_scale_f32(cells, out, at[i].slope);
      std::fill(out + cells, out + chasqui_tile_cells, -INFINITY);
      seen = seen || most_of(out) != -INFINITY;
    }
    return seen;
  }

  // Transposed: a row for each of the dimensions.
  void take_keys(int64_t cell, int cells) {
    if (cells < chasqui_tile_cells) memset(keys, 0, dk * chasqui_tile_cells * sizeof(float));
    float * rows = values;  // not taken yet
    for (int first = 0; first < cells; first += 4) {
      const int some = MIN(4, cells - first);
      for (int i = 0; i < 4; ++i) {
        if (i < some) {
          const char * from = first_key + (cell + first + i) * k->nb[1];
          fetch(from + chasqui_cells_ahead * k->nb[1], dk * ggml_type_size(k->type));
          copy_row(k, from, rows + i * dk, dk);
        } else {
          memset(rows + i * dk, 0, dk * sizeof(float));
        }
      }
      transpose(rows, keys + first);
    }
  }

  void transpose(const float * rows, float * out) const {
    int64_t d = 0;
#if defined(__SSE__)
    for (; d + 4 <= dk; d += 4) {
      __m128 a = _mm_loadu_ps(rows + d), b = _mm_loadu_ps(rows + dk + d);
      __m128 c = _mm_loadu_ps(rows + 2 * dk + d), e = _mm_loadu_ps(rows + 3 * dk + d);
      _MM_TRANSPOSE4_PS(a, b, c, e);
      _mm_storeu_ps(out + (d + 0) * chasqui_tile_cells, a);
      _mm_storeu_ps(out + (d + 1) * chasqui_tile_cells, b);
      _mm_storeu_ps(out + (d + 2) * chasqui_tile_cells, c);
      _mm_storeu_ps(out + (d + 3) * chasqui_tile_cells, e);
    }
#endif
    for (; d < dk; ++d) {
      for (int i = 0; i < 4; ++i) out[d * chasqui_tile_cells + i] = rows[i * dk + d];
    }
  }

  void take_values(int64_t cell, int cells) {
    for (int i = 0; i < cells; ++i) {
      const char * from = first_value + (cell + i) * v->nb[1];
      fetch(from + chasqui_cells_ahead * v->nb[1], dv * ggml_type_size(v->type));
      copy_row(v, from, values + i * dv, dv);
    }
    memset(values + cells * dv, 0, (chasqui_tile_cells - cells) * dv * sizeof(float));
  }

  // Rows of keys lie apart, since those of other heads are in between, and the processor does not see what comes next.
  // What is beyond the last cell is fetched for nothing.
  static void fetch(const char * from, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += CACHE_LINE_SIZE) __builtin_prefetch(from + i);
  }

  static void copy_row(const ggml_tensor * of, const char * from, float * to, int64_t size) {
    if (of->type == GGML_TYPE_F16) {
      ggml_cpu_fp16_to_fp32((const ggml_fp16_t *)from, to, size);
    } else {
      memcpy(to, from, size * sizeof(float));
    }
  }

  // What each row makes of the cells: weights, relative to the largest score so far.
  void score(int cells) {
    const int all = padded * chasqui_tile_cells;
    memset(scores, 0, all * sizeof(float));
    simd_gemm(scores, queries, keys, padded, (int)dk, chasqui_tile_cells);
    ggml_vec_scale_f32(all, scores, scale);
    if (softcap != 0.0f) {
      ggml_vec_tanh_f32(all, scores, scores);
      ggml_vec_scale_f32(all, scores, softcap);
    }
    if (mask) ggml_vec_add_f32(count * chasqui_tile_cells, scores, scores, masks);
    for (int i = 0; i < padded; ++i) {
      float * row = scores + i * chasqui_tile_cells;
      std::fill(row + cells, row + chasqui_tile_cells, -INFINITY);
      const float here = i < count ? most_of(row) : -INFINITY;
      if (here == -INFINITY) {
        memset(row, 0, chasqui_tile_cells * sizeof(float));
        continue;
      }
      if (here > most[i]) {
        const float less = expf(most[i] - here);
        ggml_vec_scale_f32((int)dv, sums + i * dv, less);
        total[i] *= less;
        most[i] = here;
      }
      total[i] += ggml_vec_soft_max_f32(chasqui_tile_cells, row, row, most[i]);
    }
  }

  void add_sinks() {
    for (int i = 0; i < count; ++i) {
      const float sink = ((const float *)sinks->data)[at[i].head];
      if (sink > most[i]) {
        const float less = expf(most[i] - sink);
        ggml_vec_scale_f32((int)dv, sums + i * dv, less);
        total[i] = total[i] * less + 1.0f;
        most[i] = sink;
      } else {
        total[i] += expf(sink - most[i]);
      }
    }
  }

  ggml_tensor * dst;
  const ggml_tensor *q, *k, *v, *mask, *sinks;
  const int64_t dk, dv, heads, rows_of_head;
  float scale, max_bias, softcap;
  float *queries, *scores, *masks, *sums, *values, *keys;
  // Of the tile.
  int count = 0, padded = 0;
  const char *first_key = nullptr, *first_value = nullptr;
  Place at[chasqui_tile_rows];
  float most[chasqui_tile_rows], total[chasqui_tile_rows];
};

// The tiles that begin in the rows [ir0, ir1) of all heads, as the caller gives them to threads: as large as memory for
// them, but at least two for each thread while that leaves rows enough for one multiplication.
static void chasqui_flash_attn_tiles(const ggml_compute_params * params, ggml_tensor * dst, int ir0, int ir1) {
  const ggml_tensor * q = dst->src[0];
  const int64_t of_group = q->ne[1] * ChasquiAttention::group(q, dst->src[1], dst->src[2]);
  const int64_t groups = q->ne[1] * q->ne[2] * q->ne[3] / of_group;
  const auto parts = [](int64_t whole, int64_t of) { return (whole + of - 1) / of; };
  const int64_t wanted = MIN(parts(2 * params->nth, groups), parts(of_group, chasqui_step_rows));
  const int64_t tiles = MAX(wanted, parts(of_group, chasqui_tile_rows));
  const int64_t rows = parts(parts(of_group, tiles), chasqui_step_rows) * chasqui_step_rows;
  ChasquiAttention attention(params, dst, (float *)params->wdata);
  int64_t group = ir0 / of_group;
  int64_t row = parts(ir0 % of_group, rows) * rows;
  for (;; row += rows) {
    if (row >= of_group) {
      ++group;
      row = 0;
    }
    const int64_t first = group * of_group + row;
    if (first >= ir1) return;
    attention.compute(first, (int)MIN(rows, of_group - row), 0, dst->src[1]->ne[1]);
    attention.write();
  }
}

// The cells [begin, end) of a single row of each head, as parts that ggml adds up. Memory for tiles begins where that
// for all parts ends.
static void chasqui_flash_attn_part(const ggml_compute_params * params, ggml_tensor * dst, int64_t begin, int64_t end,
                                    float * parts, int64_t stride, float * parts_end) {
  const ggml_tensor * q = dst->src[0];
  const int64_t group = ChasquiAttention::group(q, dst->src[1], dst->src[2]);
  ChasquiAttention attention(params, dst, parts_end);
  for (int64_t first = 0; first < q->ne[2]; first += group) {
    for (int64_t row = 0; row < group; row += chasqui_tile_rows) {
      attention.compute(first + row, (int)MIN(chasqui_tile_rows, group - row), begin, end);
      attention.write_parts(parts, stride);
    }
  }
}
