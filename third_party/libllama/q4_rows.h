// Included in a copy of ggml's arch/x86/repack.cpp (q4_rows.cmake), in front of what calls it: rows times a matrix of Q4_0 in
// groups of eight columns, where the processor multiplies bytes by fours (AVX-512 VNNI) or by pairs (AVX2). Their
// instructions take one side without a sign; ggml moves the sign of each number of a row to each number of the matrix,
// which costs as much again. Here the matrix has none: its numbers are 0 to 15 instead of -8 to 7, and eight times the sum
// of a row's block is taken off. Sums of integers are exact and floats are added in ggml's order, so that the bits are
// those of ggml's kernel.
#pragma once

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <vector>

static constexpr int chasqui_group_rows = 4;   // of a block_q8_0x4
static constexpr int chasqui_groups_most = 4;  // whose sums fit into registers

// Rows as ggml puts four of them together: eight numbers of each after the other.
struct ChasquiRowGroups {
  static constexpr int step = 8 * chasqui_group_rows;
  const block_q8_0x4 * groups[chasqui_groups_most];

  const int8_t * numbers(int row, int block) const {
    return groups[row / chasqui_group_rows][block].qs + row % chasqui_group_rows * 8;
  }
};

// Rows by themselves.
struct ChasquiRows {
  static constexpr int step = 8;
  const char * rows;
  size_t row_bytes;

  const block_q8_0 & block(int row, int block) const { return ((const block_q8_0 *)(rows + row * row_bytes))[block]; }
  const int8_t * numbers(int row, int block) const { return this->block(row, block).qs; }
};

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "q4_rows_avx512.h"
#else
#include "q4_rows_avx2.h"
#endif

// As many columns as there are whole widths of; the others are left to the caller.
static int chasqui_gemm_q4_0(int n, float * s, size_t bs, const void * vx, const void * vy, int nr, int nc) {
  static thread_local ChasquiQ4Rows rows;
  const int blocks = n / QK8_0;
  const int columns = nc - nc % chasqui_q4_width;
  if (columns == 0) return 0;
  const auto * all = (const block_q8_0x4 *)vy;
  for (int y = 0; y < nr / chasqui_group_rows; y += chasqui_groups_most) {
    const int count = MIN(chasqui_groups_most, nr / chasqui_group_rows - y);
    ChasquiRowGroups from;
    for (int g = 0; g < count; ++g) from.groups[g] = all + (size_t)(y + g) * blocks;
    rows.take(from, count, blocks);
    float * out = s + (size_t)y * chasqui_group_rows * bs;
    switch (count) {
      case 1: chasqui_q4_columns<4>(blocks, vx, columns, from, rows, out, bs); break;
      case 2: chasqui_q4_columns<8>(blocks, vx, columns, from, rows, out, bs); break;
      case 3: chasqui_q4_columns<12>(blocks, vx, columns, from, rows, out, bs); break;
      default: chasqui_q4_columns<16>(blocks, vx, columns, from, rows, out, bs); break;
    }
  }
  return columns;
}

// One to three rows that are in no group, times all columns, which come by eights: the matrix is read once for all of them.
// False: they are not computed.
bool chasqui_few_q4_0(int n, float * s, size_t bs, const void * vx, const char * rows, size_t row_bytes, int nr, int nc) {
  static thread_local ChasquiQ4Rows prepared;
  const int blocks = n / QK8_0;
  const ChasquiRows from{rows, row_bytes};
  prepared.take(from, nr, blocks);
  switch (nr) {
    case 1: chasqui_q4_columns<1>(blocks, vx, nc, from, prepared, s, bs); break;
    case 2: chasqui_q4_columns<2>(blocks, vx, nc, from, prepared, s, bs); break;
    default: chasqui_q4_columns<3>(blocks, vx, nc, from, prepared, s, bs); break;
  }
  return true;
}
#else
static int chasqui_gemm_q4_0(int, float *, size_t, const void *, const void *, int, int) { return 0; }
bool chasqui_few_q4_0(int, float *, size_t, const void *, const char *, size_t, int, int) { return false; }
#endif
