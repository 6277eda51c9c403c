// The part of q4_rows.h for AVX-512 VNNI: 64 products of bytes at once, summed up by fours.
#pragma once

static constexpr int chasqui_q4_width = 16;  // columns at once

// What the product of each block of each row begins with, and what it is multiplied with.
struct ChasquiQ4Rows {
  std::vector<uint64_t> offsets;  // minus eight times the sum of each row's block, in the lower half
  std::vector<float> scales;

  void resize(int rows, int blocks) {
    offsets.resize((size_t)blocks * rows);
    scales.resize((size_t)blocks * rows);
  }

  void take(const ChasquiRowGroups & from, int count, int blocks) {
    const int rows = count * chasqui_group_rows;
    resize(rows, blocks);
    const __m512i ones = _mm512_set1_epi8(1);
    for (int g = 0; g < count; ++g) {
      for (int b = 0; b < blocks; ++b) {
        const block_q8_0x4 & block = from.groups[g][b];
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

  void take(const ChasquiRows & from, int rows, int blocks) {
    resize(rows, blocks);
    for (int b = 0; b < blocks; ++b) {
      for (int r = 0; r < rows; ++r) {
        const block_q8_0 & block = from.block(r, b);
        int sum = 0;
        for (const int8_t number : block.qs) sum += number;
        offsets[(size_t)b * rows + r] = (uint32_t)(-8 * sum);
        scales[(size_t)b * rows + r] = GGML_CPU_FP16_TO_FP32(block.d);
      }
    }
  }
};

// `count` rows times sixteen columns.
template <int count, class Rows>
static void chasqui_q4_sixteen(int blocks, const block_q4_0x8 * left, const block_q4_0x8 * right, const Rows & from,
                               const ChasquiQ4Rows & rows, float * out, size_t stride) {
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
      const int8_t * qs = from.numbers(i, b);
      __m512i lanes[2] = {_mm512_set1_epi64((long long)offsets[i]), _mm512_set1_epi64((long long)offsets[i])};
      for (int k = 0; k < 4; ++k) {
        int64_t eight;
        memcpy(&eight, qs + Rows::step * k, sizeof eight);
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

// `count` rows times eight columns.
template <int count, class Rows>
static void chasqui_q4_eight(int blocks, const block_q4_0x8 * matrix, const Rows & from, const ChasquiQ4Rows & rows,
                             float * out, size_t stride) {
  const __m512i low = _mm512_set1_epi8(0x0F);
  const __m512i sign = _mm512_set1_epi8(0x08);
  __m256 sums[count];
  for (int i = 0; i < count; ++i) sums[i] = _mm256_setzero_ps();
  for (int b = 0; b < blocks; ++b) {
    const __m512i raw0 = _mm512_loadu_si512(matrix[b].qs);
    const __m512i raw1 = _mm512_loadu_si512(matrix[b].qs + 64);
    const __m512i columns[4] = {
        _mm512_ternarylogic_epi32(raw0, low, sign, 0x6A), _mm512_ternarylogic_epi32(raw1, low, sign, 0x6A),
        _mm512_ternarylogic_epi32(_mm512_srli_epi16(raw0, 4), low, sign, 0x6A),
        _mm512_ternarylogic_epi32(_mm512_srli_epi16(raw1, 4), low, sign, 0x6A)};
    const __m256 column_scales = GGML_F32Cx8_LOAD(matrix[b].d);
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i) {
      const int8_t * qs = from.numbers(i, b);
      __m512i lanes = _mm512_set1_epi64((long long)rows.offsets[(size_t)b * count + i]);
      for (int k = 0; k < 4; ++k) {
        int64_t eight;
        memcpy(&eight, qs + Rows::step * k, sizeof eight);
        lanes = _mm512_dpbusd_epi32(lanes, columns[k], _mm512_set1_epi64(eight));
      }
      const __m256i whole = _mm512_cvtepi64_epi32(_mm512_add_epi32(lanes, _mm512_srli_epi64(lanes, 32)));
      const __m256 scale = _mm256_mul_ps(column_scales, _mm256_set1_ps(rows.scales[(size_t)b * count + i]));
      sums[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), scale, sums[i]);
    }
  }
  for (int i = 0; i < count; ++i) _mm256_storeu_ps(out + i * stride, sums[i]);
}

// All of `columns`: by sixteens, or for a few rows by eights. Those read the matrix as one stream, which matters where memory
// is what limits them.
template <int count, class Rows>
static void chasqui_q4_columns(int blocks, const void * matrix, int columns, const Rows & from, const ChasquiQ4Rows & rows,
                               float * out, size_t stride) {
  constexpr int width = count > chasqui_group_rows ? 16 : 8;
  for (int x = 0; x < columns; x += width) {
    const block_q4_0x8 * at = (const block_q4_0x8 *)matrix + (size_t)(x / 8) * blocks;
    if constexpr (width == 16) {
      chasqui_q4_sixteen<count>(blocks, at, at + blocks, from, rows, out + x, stride);
    } else {
      chasqui_q4_eight<count>(blocks, at, from, rows, out + x, stride);
    }
  }
}
