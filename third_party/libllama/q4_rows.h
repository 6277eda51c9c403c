// Included in a copy of ggml's arch/x86/repack.cpp (q4_rows.cmake), in front of what calls it: rows times a matrix of Q4_0 in
// groups of eight columns, where the processor multiplies bytes by fours (AVX-512 VNNI). Its instruction takes one side
// without a sign; ggml moves the sign of each number of a row to each number of the matrix, which costs as much again.
// Here the matrix has none: its numbers are 0 to 15 instead of -8 to 7, and eight times the sum of a row's block is taken
// off. Sums of integers are exact and floats are added in ggml's order, so that the bits are those of ggml's kernel.
#pragma once

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#include <algorithm>
#include <vector>

static constexpr int chasqui_group_rows = 4;   // of a block_q8_0x4
static constexpr int chasqui_groups_most = 4;  // whose sums fit into registers

// What a group of rows is multiplied with, block after block.
struct ChasquiQ4Rows {
  std::vector<uint64_t> offsets;  // minus eight times the sum of each row's block, in the lower half
  std::vector<float> scales;

  void take(const block_q8_0x4 * const * groups, int count, int blocks) {
    const int rows = count * chasqui_group_rows;
    offsets.resize((size_t)blocks * rows);
    scales.resize((size_t)blocks * rows);
    const __m512i ones = _mm512_set1_epi8(1);
    for (int g = 0; g < count; ++g) {
      for (int b = 0; b < blocks; ++b) {
        const block_q8_0x4 & block = groups[g][b];
        // Eight bytes of each row after the other, four times.
        __m512i bytes = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, _mm512_loadu_si512(block.qs));
        bytes = _mm512_dpbusd_epi32(bytes, ones, _mm512_loadu_si512(block.qs + 64));
        const __m256i pairs = _mm256_add_epi32(_mm512_castsi512_si256(bytes), _mm512_extracti64x4_epi64(bytes, 1));
        const __m128i sums = _mm_hadd_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
        const __m128i taken_off = _mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(sums, 3));
        const size_t at = (size_t)b * rows + g * chasqui_group_rows;
        _mm256_storeu_si256((__m256i *)&offsets[at], _mm256_cvtepu32_epi64(taken_off));
        _mm_storeu_ps(&scales[at], _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)block.d)));
      }
    }
  }
};

// `G` groups of rows times sixteen columns.
template <int G>
static void chasqui_q4_tile(int blocks, const block_q4_0x8 * left, const block_q4_0x8 * right,
                            const block_q8_0x4 * const * groups, const ChasquiQ4Rows & rows, float * out, size_t stride) {
  constexpr int count = G * chasqui_group_rows;
  const __m512i low = _mm512_set1_epi8(0x0F);
  const __m512i sign = _mm512_set1_epi8(0x08);
  // Lanes of four bytes: of each column, the first four and the last four of eight.
  const __m512i first = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i last = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  __m512 sums[count];
  for (int i = 0; i < count; ++i) sums[i] = _mm512_setzero_ps();
  for (int b = 0; b < blocks; ++b) {
    __m512i columns[2][4];
    for (int side = 0; side < 2; ++side) {
      const int8_t * qs = (side == 0 ? left : right)[b].qs;
      for (int half = 0; half < 2; ++half) {
        const __m512i raw = _mm512_loadu_si512(qs + 64 * half);
        // (raw & low) ^ sign
        columns[side][half] = _mm512_ternarylogic_epi32(raw, low, sign, 0x6A);
        columns[side][half + 2] = _mm512_ternarylogic_epi32(_mm512_srli_epi16(raw, 4), low, sign, 0x6A);
      }
    }
    const __m512 column_scales = GGML_F32Cx8x2_LOAD(left[b].d, right[b].d);
    const uint64_t * offsets = rows.offsets.data() + (size_t)b * count;
    const float * scales = rows.scales.data() + (size_t)b * count;
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) {
      const int8_t * qs = groups[i / chasqui_group_rows][b].qs + i % chasqui_group_rows * 8;
      __m512i lanes[2] = {_mm512_set1_epi64((long long)offsets[i]), _mm512_set1_epi64((long long)offsets[i])};
      for (int k = 0; k < 4; ++k) {
        int64_t eight;
        memcpy(&eight, qs + 32 * k, sizeof eight);
        const __m512i row = _mm512_set1_epi64(eight);
        lanes[0] = _mm512_dpbusd_epi32(lanes[0], columns[0][k], row);
        lanes[1] = _mm512_dpbusd_epi32(lanes[1], columns[1][k], row);
      }
      const __m512i whole = _mm512_add_epi32(_mm512_permutex2var_epi32(lanes[0], first, lanes[1]),
                                             _mm512_permutex2var_epi32(lanes[0], last, lanes[1]));
      const __m512 scale = _mm512_mul_ps(column_scales, _mm512_set1_ps(scales[i]));
      sums[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), scale, sums[i]);
    }
  }
  for (int i = 0; i < count; ++i) _mm512_storeu_ps(out + i * stride, sums[i]);
}

// As many columns as there are sixteens of; the others are left to the caller.
static int chasqui_gemm_q4_0(int n, float * s, size_t bs, const void * vx, const void * vy, int nr, int nc) {
  static thread_local ChasquiQ4Rows rows;
  const int blocks = n / QK8_0;
  const int columns = nc - nc % 16;
  if (columns == 0) return 0;
  const auto * matrix = (const block_q4_0x8 *)vx;
  const auto * all = (const block_q8_0x4 *)vy;
  for (int y = 0; y < nr / chasqui_group_rows; y += chasqui_groups_most) {
    const int count = MIN(chasqui_groups_most, nr / chasqui_group_rows - y);
    const block_q8_0x4 * groups[chasqui_groups_most];
    for (int g = 0; g < count; ++g) groups[g] = all + (size_t)(y + g) * blocks;
    rows.take(groups, count, blocks);
    for (int x = 0; x < columns; x += 16) {
      const block_q4_0x8 * left = matrix + (size_t)(x / 8) * blocks;
      float * out = s + (size_t)y * chasqui_group_rows * bs + x;
      switch (count) {
        case 1: chasqui_q4_tile<1>(blocks, left, left + blocks, groups, rows, out, bs); break;
        case 2: chasqui_q4_tile<2>(blocks, left, left + blocks, groups, rows, out, bs); break;
        case 3: chasqui_q4_tile<3>(blocks, left, left + blocks, groups, rows, out, bs); break;
        default: chasqui_q4_tile<4>(blocks, left, left + blocks, groups, rows, out, bs); break;
      }
    }
  }
  return columns;
}

// One to three rows that are not in a group yet: the matrix is read once for all of them.
int chasqui_few_q4_0(int n, float * s, size_t bs, const void * vx, const char * rows, size_t row_bytes, int nr, int nc) {
  static thread_local std::vector<block_q8_0x4> group;
  const int blocks = n / QK8_0;
  const int columns = nc - nc % 16;
  group.assign(blocks, block_q8_0x4{});
  for (int r = 0; r < nr; ++r) {
    const auto * row = (const block_q8_0 *)(rows + r * row_bytes);
    for (int b = 0; b < blocks; ++b) {
      group[b].d[r] = row[b].d;
      for (int k = 0; k < 4; ++k) memcpy(group[b].qs + 32 * k + 8 * r, row[b].qs + 8 * k, 8);
    }
  }
  static thread_local std::vector<float> out;
  out.resize((size_t)chasqui_group_rows * columns);
  chasqui_gemm_q4_0(n, out.data(), columns, vx, group.data(), chasqui_group_rows, columns);
  for (int r = 0; r < nr; ++r) std::copy_n(out.data() + (size_t)r * columns, columns, s + r * bs);
  return columns;
}
#else
static int chasqui_gemm_q4_0(int, float *, size_t, const void *, const void *, int, int) { return 0; }
int chasqui_few_q4_0(int, float *, size_t, const void *, const char *, size_t, int, int) { return 0; }
#endif
