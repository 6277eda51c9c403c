// Included in a copy of ggml's llamafile/sgemm.cpp (byte_rows.cmake), in front of llamafile_sgemm: rows of bytes times
// a matrix of Q8_0, Q6_K, Q5_K or Q4_K, where the processor multiplies bytes by fours (AVX-512 VNNI); with AVX2 alone,
// a matrix of the K formats (byte_rows_avx2.h). ggml multiplies one row with one column at a time and adds up the lanes
// of each block; here a lane belongs to one of sixteen columns, for which the matrix is arranged once for up to 64
// rows, and a row is spread to all lanes by the load itself. The instruction takes one side without a sign: that is the
// matrix, and what makes it so is taken off as a multiple of the sum of a row's block. Integers are added up exactly,
// as ggml does; floats of blocks one after the other.
#pragma once

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace chasqui {

constexpr int kColumns = 16;    // of a strip: the lanes of a vector
constexpr int kRowsMost = 64;   // that one arrangement of a strip serves

// Of sixteen columns the same sixteen bytes: four vectors, each with four bytes of every column.
inline void spread(const uint8_t * const * columns, __m512i out[4]) {
  __m512i parts[4];
  for (int i = 0; i < 4; ++i) {
    parts[i] = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)columns[i]));
    parts[i] = _mm512_inserti32x4(parts[i], _mm_loadu_si128((const __m128i *)columns[i + 4]), 1);
    parts[i] = _mm512_inserti32x4(parts[i], _mm_loadu_si128((const __m128i *)columns[i + 8]), 2);
    parts[i] = _mm512_inserti32x4(parts[i], _mm_loadu_si128((const __m128i *)columns[i + 12]), 3);
  }
  const __m512i low01 = _mm512_unpacklo_epi32(parts[0], parts[1]);
  const __m512i high01 = _mm512_unpackhi_epi32(parts[0], parts[1]);
  const __m512i low23 = _mm512_unpacklo_epi32(parts[2], parts[3]);
  const __m512i high23 = _mm512_unpackhi_epi32(parts[2], parts[3]);
  out[0] = _mm512_unpacklo_epi64(low01, low23);
  out[1] = _mm512_unpackhi_epi64(low01, low23);
  out[2] = _mm512_unpacklo_epi64(high01, high23);
  out[3] = _mm512_unpackhi_epi64(high01, high23);
}

inline __m512i four_bytes(const int8_t * at) {
  int32_t four;
  memcpy(&four, at, sizeof four);
  return _mm512_set1_epi32(four);
}

// Q8_0 times Q8_0, in strips of columns: blocks of 32 numbers with one scale.
struct Q8Rows {
  using Column = block_q8_0;
  using Row = block_q8_0;
  static constexpr int kTileRows = 16;  // whose sums fit into registers

  struct alignas(64) Strip {
    __m512i bytes[8];  // plus 128
    __m512 scales;
  };
  struct RowBlock {
    int32_t offset;  // minus 128 times the sum of the row's block
    float scale;
  };

  static void arrange(const Column * const * columns, Strip & out) {
    const uint8_t * at[kColumns];
    alignas(32) ggml_half scales[kColumns];
    for (int half = 0; half < 2; ++half) {
      for (int c = 0; c < kColumns; ++c) at[c] = (const uint8_t *)columns[c]->qs + 16 * half;
      spread(at, out.bytes + 4 * half);
    }
    for (int c = 0; c < kColumns; ++c) scales[c] = columns[c]->d;
    for (__m512i & bytes : out.bytes) bytes = _mm512_xor_si512(bytes, _mm512_set1_epi8((char)0x80));
    out.scales = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)scales));
  }

  static RowBlock prepare(const Row & row) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_loadu_si256((const __m256i *)row.qs));
    const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
    sum = _mm_hadd_epi32(sum, sum);
    sum = _mm_hadd_epi32(sum, sum);
    return {-128 * _mm_cvtsi128_si32(sum), GGML_FP16_TO_FP32(row.d)};
  }

  // Of `R` rows.
  template <int R>
  static void add(const Strip & strip, const Row * row, int64_t stride, const RowBlock * prepared, int64_t blocks,
                  __m512 * sums) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const RowBlock & of_row = prepared[r * blocks];
      const int8_t * numbers = row[r * stride].qs;
      __m512i whole = _mm512_set1_epi32(of_row.offset);
      for (int k = 0; k < 8; ++k) whole = _mm512_dpbusd_epi32(whole, strip.bytes[k], four_bytes(numbers + 4 * k));
      const __m512 scale = _mm512_mul_ps(strip.scales, _mm512_set1_ps(of_row.scale));
      sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), scale, sums[r]);
    }
  }
};

}  // namespace chasqui

#include "k_rows.h"
#include "few_rows.h"

namespace chasqui {

template <class Kind, class Few>
struct Product {
  using Column = typename Kind::Column;
  using Row = typename Kind::Row;
  using Strip = typename Kind::Strip;
  using RowBlock = typename Kind::RowBlock;

  const Column * matrix;
  int64_t matrix_stride;  // blocks
  const Row * rows;
  int64_t rows_stride;  // blocks
  float * out;
  int64_t out_stride;
  int64_t blocks;

  // `R` rows from `row` on, times the strip that begins at `column`. Returns `R`.
  template <int R>
  int tile(const Strip * strip, const RowBlock * prepared, int64_t row, int64_t column, __mmask16 columns) const {
    __m512 sums[R];
    for (__m512 & sum : sums) sum = _mm512_setzero_ps();
    for (int64_t b = 0; b < blocks; ++b) {
      Kind::template add<R>(strip[b], rows + row * rows_stride + b, rows_stride, prepared + b, blocks, sums);
    }
    for (int r = 0; r < R; ++r) _mm512_mask_storeu_ps(out + (row + r) * out_stride + column, columns, sums[r]);
    return R;
  }

  // Columns from `begin` to `end`, for a few rows: few_rows.h.
  void compute_few(int64_t count, int64_t begin, int64_t end) const {
    static thread_local std::vector<typename Few::RowBlock> arranged;
    arranged.resize(count * blocks);
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t b = 0; b < blocks; ++b) Few::arrange(rows[row * rows_stride + b], arranged[row * blocks + b]);
    }
    const FewRows<Few> few{matrix, matrix_stride, blocks, arranged.data(), out, out_stride};
    few.template compute<Few::kMostRows>(count, begin, end);
  }

  // The same in strips, which need not be full.
  void compute(int64_t count, int64_t begin, int64_t end) const {
    static thread_local std::vector<Strip> strip;
    static thread_local std::vector<RowBlock> prepared;
    strip.resize(blocks);
    prepared.resize(kRowsMost * blocks);
    for (int64_t first = 0; first < count; first += kRowsMost) {
      const int64_t last = std::min(count, first + kRowsMost);
      for (int64_t row = first; row < last; ++row) {
        for (int64_t b = 0; b < blocks; ++b) {
          prepared[(row - first) * blocks + b] = Kind::prepare(rows[row * rows_stride + b]);
        }
      }
      for (int64_t column = begin; column < end; column += kColumns) {
        const int64_t there = std::min<int64_t>(kColumns, end - column);
        for (int64_t b = 0; b < blocks; ++b) {
          const Column * columns[kColumns];
          for (int64_t c = 0; c < kColumns; ++c) {
            columns[c] = matrix + (column + std::min(c, there - 1)) * matrix_stride + b;
            // The next strip. Sixteen streams are more than the processor follows by itself.
            const char * next = (const char *)(columns[c] + kColumns * matrix_stride);
            for (size_t line = 0; line < sizeof(Column); line += 64) _mm_prefetch(next + line, _MM_HINT_T0);
          }
          Kind::arrange(columns, strip[b]);
        }
        tiles(strip.data(), prepared.data(), first, last, column, (__mmask16)((1u << there) - 1));
      }
    }
  }

  void tiles(const Strip * strip, const RowBlock * prepared, int64_t first, int64_t last, int64_t column,
             __mmask16 columns) const {
    for (int64_t row = first; row < last;) {
      const RowBlock * of_row = prepared + (row - first) * blocks;
      const int64_t left = last - row;
      row += left >= Kind::kTileRows ? tile<Kind::kTileRows>(strip, of_row, row, column, columns)
             : left >= 4             ? tile<4>(strip, of_row, row, column, columns)
             : left >= 2             ? tile<2>(strip, of_row, row, column, columns)
                                     : tile<1>(strip, of_row, row, column, columns);
    }
  }
};

// `m` columns, `n` rows, `k` blocks: this thread's part of the columns.
template <class Kind, class Few>
bool multiply(const ggml_compute_params * params, int64_t m, int64_t n, int64_t k, const void * A, int64_t lda,
              const void * B, int64_t ldb, void * C, int64_t ldc) {
  const int64_t strips = (m + kColumns - 1) / kColumns;
  const int64_t begin = strips * params->ith / params->nth * kColumns;
  const int64_t end = std::min(m, strips * (params->ith + 1) / params->nth * kColumns);
  if (n <= 0 || begin >= end) return true;
  const Product<Kind, Few> product{(const typename Kind::Column *)A, lda, (const typename Kind::Row *)B, ldb, (float *)C, ldc, k};
  if (n <= Few::kMostRows) {
    product.compute_few(n, begin, end);
  } else {
    product.compute(n, begin, end);
  }
  return true;
}

}  // namespace chasqui

// As llamafile_sgemm, for a matrix of one of these formats; false: it is another one.
static bool chasqui_gemm(const ggml_compute_params * params, int64_t m, int64_t n, int64_t k, const void * A, int64_t lda,
                         const void * B, int64_t ldb, void * C, int64_t ldc, int matrix, int rows) {
  using namespace chasqui;
  if (rows == GGML_TYPE_Q8_0) {
    return matrix == GGML_TYPE_Q8_0 && multiply<Q8Rows, Q8Few>(params, m, n, k, A, lda, B, ldb, C, ldc);
  }
  if (rows != GGML_TYPE_Q8_K) return false;
  switch (matrix) {
    case GGML_TYPE_Q4_K: return multiply<MinRows<block_q4_K>, KFew<MinColumn<block_q4_K>>>(params, m, n, k, A, lda, B, ldb, C, ldc);
    case GGML_TYPE_Q5_K: return multiply<MinRows<block_q5_K>, KFew<MinColumn<block_q5_K>>>(params, m, n, k, A, lda, B, ldb, C, ldc);
    case GGML_TYPE_Q6_K: return multiply<Q6Rows, KFew<Q6Column>>(params, m, n, k, A, lda, B, ldb, C, ldc);
    default: return false;
  }
}
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__) && !defined(__AVX512F__)
#include "byte_rows_avx2.h"
#else
static bool chasqui_gemm(const ggml_compute_params *, int64_t, int64_t, int64_t, const void *, int64_t, const void *, int64_t,
                         void *, int64_t, int, int) {
  return false;
}
#endif
