// The part of q4_rows.h for AVX2: 32 products of bytes at once, summed up by pairs in 16 bits, or by fours where the
// processor has AVX-VNNI. Eight sums of pairs fit into 16 bits, since no number of the matrix is above 15: a block of a
// column is widened once.
#pragma once

static constexpr int chasqui_q4_width = 8;  // columns at once

// What is added to the product of each block of each row, and what it is multiplied with.
struct ChasquiQ4Rows {
  std::vector<int32_t> offsets;  // minus eight times the sum of each row's block
  std::vector<float> scales;

  void resize(int rows, int blocks) {
    offsets.resize((size_t)blocks * rows);
    scales.resize((size_t)blocks * rows);
  }

  void take(const ChasquiRowGroups & from, int count, int blocks) {
    const int rows = count * chasqui_group_rows;
    resize(rows, blocks);
    const __m256i bytes = _mm256_set1_epi8(1);
    const __m256i words = _mm256_set1_epi16(1);
    for (int g = 0; g < count; ++g) {
      for (int b = 0; b < blocks; ++b) {
        const block_q8_0x4 & block = from.groups[g][b];
        // Eight bytes of each row after the other, four times.
        __m256i pairs = _mm256_setzero_si256();
        for (int k = 0; k < 4; ++k) {
          const __m256i eights = _mm256_loadu_si256((const __m256i *)(block.qs + 32 * k));
          pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(bytes, eights));
        }
        const __m256i halves = _mm256_madd_epi16(pairs, words);
        const __m128i sums = _mm_hadd_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
        const size_t at = (size_t)b * rows + g * chasqui_group_rows;
        _mm_storeu_si128((__m128i *)&offsets[at], _mm_sub_epi32(_mm_setzero_si128(), _mm_slli_epi32(sums, 3)));
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
        offsets[(size_t)b * rows + r] = -8 * sum;
        scales[(size_t)b * rows + r] = GGML_CPU_FP16_TO_FP32(block.d);
      }
    }
  }
};

// A block of eight columns, a lane of four bytes for each: number 4k … 4k+3 of each column in columns[k]. The order of
// the columns is 0 1 4 5 2 3 6 7.
static inline void chasqui_q4_unpack(const block_q4_0x8 & block, __m256i columns[8]) {
  const __m256i low = _mm256_set1_epi8(0x0F);
  const __m256i sign = _mm256_set1_epi8((char)0x88);
  for (int half = 0; half < 2; ++half) {
    const __m256 left = _mm256_loadu_ps((const float *)(block.qs + 64 * half));
    const __m256 right = _mm256_loadu_ps((const float *)(block.qs + 64 * half + 32));
    for (int part = 0; part < 2; ++part) {
      const __m256 mixed = part == 0 ? _mm256_shuffle_ps(left, right, 0x88) : _mm256_shuffle_ps(left, right, 0xDD);
      const __m256i raw = _mm256_xor_si256(_mm256_castps_si256(mixed), sign);
      columns[2 * half + part] = _mm256_and_si256(raw, low);
      columns[2 * half + part + 4] = _mm256_and_si256(_mm256_srli_epi16(raw, 4), low);
    }
  }
}

static inline __m256i chasqui_four_bytes(const int8_t * from) {
  int32_t four;
  memcpy(&four, from, sizeof four);
  return _mm256_set1_epi32(four);
}

// The sums of a row's block times each column's.
template <class Rows>
static inline __m256i chasqui_q4_products(const __m256i columns[8], const int8_t * row) {
  const auto numbers = [row](int k) { return chasqui_four_bytes(row + Rows::step * (k / 2) + 4 * (k % 2)); };
#if defined(__AVXVNNI__)
  __m256i sums = _mm256_setzero_si256();
  for (int k = 0; k < 8; ++k) sums = _mm256_dpbusd_avx_epi32(sums, columns[k], numbers(k));
  return sums;
#else
  __m256i pairs = _mm256_maddubs_epi16(columns[0], numbers(0));
  for (int k = 1; k < 8; ++k) pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(columns[k], numbers(k)));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

// `count` rows times eight columns.
template <int count, class Rows>
static void chasqui_q4_eight(int blocks, const block_q4_0x8 * matrix, const Rows & from, const ChasquiQ4Rows & rows,
                             float * out, size_t stride) {
  __m256 sums[count];
  for (int i = 0; i < count; ++i) sums[i] = _mm256_setzero_ps();
  for (int b = 0; b < blocks; ++b) {
    __m256i columns[8];
    chasqui_q4_unpack(matrix[b], columns);
    const __m256d in_order = _mm256_castps_pd(GGML_F32Cx8_LOAD(matrix[b].d));
    const __m256 column_scales = _mm256_castpd_ps(_mm256_permute4x64_pd(in_order, 0xD8));
    const int32_t * offsets = rows.offsets.data() + (size_t)b * count;
    const float * scales = rows.scales.data() + (size_t)b * count;
#pragma GCC unroll 16
    for (int i = 0; i < count; ++i) {
      const __m256i whole =
          _mm256_add_epi32(chasqui_q4_products<Rows>(columns, from.numbers(i, b)), _mm256_set1_epi32(offsets[i]));
      const __m256 scale = _mm256_mul_ps(column_scales, _mm256_set1_ps(scales[i]));
      sums[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), scale, sums[i]);
    }
  }
  for (int i = 0; i < count; ++i) {
    const __m256d in_order = _mm256_permute4x64_pd(_mm256_castps_pd(sums[i]), 0xD8);
    _mm256_storeu_ps(out + i * stride, _mm256_castpd_ps(in_order));
  }
}

template <int count, class Rows>
static void chasqui_q4_columns(int blocks, const void * matrix, int columns, const Rows & from, const ChasquiQ4Rows & rows,
                               float * out, size_t stride) {
  for (int x = 0; x < columns; x += chasqui_q4_width) {
    const block_q4_0x8 * at = (const block_q4_0x8 *)matrix + (size_t)(x / 8) * blocks;
    chasqui_q4_eight<count>(blocks, at, from, rows, out + x, stride);
  }
}
