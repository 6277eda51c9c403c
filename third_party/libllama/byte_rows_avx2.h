// The part of byte_rows.h for AVX2, for Q4_K, Q5_K and Q6_K: strips of eight columns, a lane for each. 32 products of
// bytes are added up by pairs in 16 bits, as many of them as fit there, and multiplied by the scale of their part while
// they are widened. Arranging eight columns costs as much as two or three rows do, so that a few rows take the same
// way; they arrange one block at a time, which stays in the nearest cache. Floats are added as in the kernels for AVX-512.
// Q8_0 keeps ggml's routines: sums of two products of whole bytes do not fit into 16 bits, and numbers split into nibbles
// took longer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace chasqui {

constexpr int kColumns = 8;    // of a strip: the lanes of a vector
constexpr int kRowsMost = 64;  // that one arrangement of a strip serves

// Of eight columns the same sixteen bytes: four vectors, each with four bytes of every column.
inline void spread(const uint8_t * const * columns, __m256i out[4]) {
  __m256i parts[4];
  for (int i = 0; i < 4; ++i) {
    parts[i] = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)columns[i]));
    parts[i] = _mm256_inserti128_si256(parts[i], _mm_loadu_si128((const __m128i *)columns[i + 4]), 1);
  }
  const __m256i low01 = _mm256_unpacklo_epi32(parts[0], parts[1]);
  const __m256i high01 = _mm256_unpackhi_epi32(parts[0], parts[1]);
  const __m256i low23 = _mm256_unpacklo_epi32(parts[2], parts[3]);
  const __m256i high23 = _mm256_unpackhi_epi32(parts[2], parts[3]);
  out[0] = _mm256_unpacklo_epi64(low01, low23);
  out[1] = _mm256_unpackhi_epi64(low01, low23);
  out[2] = _mm256_unpacklo_epi64(high01, high23);
  out[3] = _mm256_unpackhi_epi64(high01, high23);
}

inline __m256i four_bytes(const void * at) {
  int32_t four;
  memcpy(&four, at, sizeof four);
  return _mm256_set1_epi32(four);
}

inline __m256i low_bits(__m256i bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi8(0x0F)); }
inline __m256i high_bits(__m256i bytes) { return low_bits(_mm256_srli_epi16(bytes, 4)); }

// Of each lane, bytes `first` and `second` as the upper ones of 16 bits each.
inline __m256i two_of_four(__m256i lanes, int first, int second) {
  const __m256i lane = _mm256_set_epi32(0x0C000C00, 0x08000800, 0x04000400, 0, 0x0C000C00, 0x08000800, 0x04000400, 0);
  const __m256i which = _mm256_set1_epi32(second << 24 | 0x80 << 16 | first << 8 | 0x80);
  return _mm256_shuffle_epi8(lanes, _mm256_or_si256(lane, which));
}

// Sums of `kVectors` times four products of a row and each column, times their scale. `kFit` sums of pairs fit into 16
// bits.
template <int kVectors, int kFit>
inline __m256i scaled_products(const __m256i * columns, const int8_t * row, __m256i scales, __m256i sums) {
#pragma GCC unroll 8
  for (int first = 0; first < kVectors; first += kFit) {
    __m256i pairs = _mm256_maddubs_epi16(columns[first], four_bytes(row + 4 * first));
#pragma GCC unroll 8
    for (int k = first + 1; k < first + kFit; ++k) {
      pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(columns[k], four_bytes(row + 4 * k)));
    }
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, scales));
  }
  return sums;
}

// Q6_K times Q8_K: blocks of 256 numbers of six bits, with a scale of eight bits for sixteen of them and one for all.
struct Q6Rows {
  using Column = block_q6_K;
  using Row = block_q8_K;
  static constexpr int kParts = QK_K / 16;
  static constexpr int kTileRows = 4;

  struct alignas(32) Strip {
    __m256i bytes[QK_K / 4];    // 0 to 63, which is plus 32
    __m256i scales[kParts];     // of each sixteen numbers, twice in a lane
    __m256i pairs[kParts / 2];  // the same, two to a lane
    __m256 scale;
  };
  struct RowBlock {};  // Q8_K has the sums already

  static void arrange(const Column * const * columns, Strip & out) {
    const __m256i upper = _mm256_set1_epi8(0x30);
    const uint8_t * at[kColumns];
    // Of each half twice sixteen bytes, with two upper bits of four numbers each.
    for (int piece = 0; piece < 4; ++piece) {
      const int half = piece / 2;
      const int begin = 16 * (piece % 2);
      __m256i bits[4], first[4], second[4];
      for (int c = 0; c < kColumns; ++c) at[c] = columns[c]->qh + 32 * half + begin;
      spread(at, bits);
      for (int c = 0; c < kColumns; ++c) at[c] = columns[c]->ql + 64 * half + begin;
      spread(at, first);
      for (int c = 0; c < kColumns; ++c) at[c] += 32;
      spread(at, second);
      for (int k = 0; k < 4; ++k) {
        __m256i * to = out.bytes + 32 * half + begin / 4 + k;
        to[0] = _mm256_or_si256(low_bits(first[k]), _mm256_and_si256(_mm256_slli_epi16(bits[k], 4), upper));
        to[8] = _mm256_or_si256(low_bits(second[k]), _mm256_and_si256(_mm256_slli_epi16(bits[k], 2), upper));
        to[16] = _mm256_or_si256(high_bits(first[k]), _mm256_and_si256(bits[k], upper));
        to[24] = _mm256_or_si256(high_bits(second[k]), _mm256_and_si256(_mm256_srli_epi16(bits[k], 2), upper));
      }
    }
    for (int c = 0; c < kColumns; ++c) at[c] = (const uint8_t *)columns[c]->scales;
    // Not by way of memory: eight short stores and a long load wait for each other.
    const auto whole = [columns](int c) { return (short)columns[c]->d; };
    out.scale = _mm256_cvtph_ps(
        _mm_setr_epi16(whole(0), whole(1), whole(2), whole(3), whole(4), whole(5), whole(6), whole(7)));
    __m256i fours[4];
    spread(at, fours);
#pragma GCC unroll 16
    for (int part = 0; part < kParts; ++part) {
      const int byte = part % 4;
      out.scales[part] = _mm256_srai_epi16(two_of_four(fours[part / 4], byte, byte), 8);
      if (part % 2 == 0) out.pairs[part / 2] = _mm256_srai_epi16(two_of_four(fours[part / 4], byte, byte + 1), 8);
    }
  }

  static RowBlock prepare(const Row &) { return {}; }

  template <int R>
  static void add(const Strip & strip, const Row * row, int64_t stride, const RowBlock *, int64_t, __m256 * sums) {
    __m256i whole[R];
    // What the 32 in each number adds is taken off first, 32 times the row's sums.
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      whole[r] = _mm256_setzero_si256();
      for (int pair = 0; pair < kParts / 2; ++pair) {
        const __m256i two = four_bytes(row[r * stride].bsums + 2 * pair);
        whole[r] = _mm256_sub_epi32(whole[r], _mm256_madd_epi16(strip.pairs[pair], two));
      }
      whole[r] = _mm256_slli_epi32(whole[r], 5);
    }
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const int8_t * numbers = row[r * stride].qs + 16 * part;
        whole[r] = scaled_products<4, 2>(strip.bytes + 4 * part, numbers, strip.scales[part], whole[r]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256 scale = _mm256_mul_ps(strip.scale, _mm256_set1_ps(row[r * stride].d));
      sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole[r]), scale, sums[r]);
    }
  }
};

inline const uint8_t * fifth_bytes(const block_q4_K &) { return nullptr; }
inline const uint8_t * fifth_bytes(const block_q5_K & block) { return block.qh; }

// Q4_K and Q5_K times Q8_K: blocks of 256 numbers without a sign, and for 32 of them a scale and a least value of six
// bits.
template <class Block>
struct MinRows {
  using Column = Block;
  using Row = block_q8_K;
  static constexpr bool kFifth = std::is_same_v<Block, block_q5_K>;
  static constexpr int kFit = kFifth ? 4 : 8;
  static constexpr int kParts = QK_K / 32;
  static constexpr int kTileRows = 4;

  struct alignas(32) Strip {
    __m256i bytes[QK_K / 4];
    __m256i scales[kParts];     // twice in a lane
    __m256i least[kParts / 2];  // of two parts
    __m256 scale, least_scale;
  };
  struct RowBlock {
    int16_t sums[kParts];
  };

  // The fifth bits of the numbers of a part.
  static __m256i fifth(__m256i bits, int part) {
    if constexpr (!kFifth) return _mm256_setzero_si256();
    const __m256i which = _mm256_set1_epi8((char)(1 << part));
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bits, which), which), _mm256_set1_epi8(0x10));
  }

  static void arrange(const Column * const * columns, Strip & out) {
    const uint8_t * at[kColumns];
    __m256i bits[2][4] = {};
    for (int half = 0; kFifth && half < 2; ++half) {
      for (int c = 0; c < kColumns; ++c) at[c] = fifth_bytes(*columns[c]) + 16 * half;
      spread(at, bits[half]);
    }
    for (int piece = 0; piece < 8; ++piece) {  // sixteen bytes with two numbers each, which are 32 apart
      for (int c = 0; c < kColumns; ++c) at[c] = columns[c]->qs + 16 * piece;
      __m256i both[4];
      spread(at, both);
      const int part = piece / 2 * 2;
      for (int k = 0; k < 4; ++k) {
        __m256i * to = out.bytes + 8 * part + piece % 2 * 4 + k;
        to[0] = _mm256_or_si256(low_bits(both[k]), fifth(bits[piece % 2][k], part));
        to[8] = _mm256_or_si256(high_bits(both[k]), fifth(bits[piece % 2][k], part + 1));
      }
    }
    arrange_scales(columns, out);
  }

  // A block begins with both scales of the whole of it, and has the others in three words behind them.
  static void arrange_scales(const Column * const * columns, Strip & out) {
    const uint8_t * at[kColumns];
    for (int c = 0; c < kColumns; ++c) at[c] = (const uint8_t *)columns[c];
    __m256i words[4];
    spread(at, words);
    const __m256i whole = _mm256_and_si256(words[0], _mm256_set1_epi32(0xFFFF));
    const __m256i both = _mm256_packus_epi32(whole, _mm256_srli_epi32(words[0], 16));
    const __m256i halves = _mm256_permute4x64_epi64(both, 0xD8);
    out.scale = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    out.least_scale = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
    // Four bytes of each column: the scales, and then the least values.
    const __m256i six = _mm256_set1_epi8(0x3F);
    const __m256i upper = _mm256_set1_epi8(0x30);
    const auto top = [upper](__m256i word) { return _mm256_and_si256(_mm256_srli_epi16(word, 2), upper); };
    const __m256i fours[4] = {
        _mm256_and_si256(words[1], six), _mm256_or_si256(low_bits(words[3]), top(words[1])),
        _mm256_and_si256(words[2], six), _mm256_or_si256(high_bits(words[3]), top(words[2]))};
#pragma GCC unroll 8
    for (int part = 0; part < kParts; ++part) {
      const int byte = part % 4;
      out.scales[part] = _mm256_srli_epi16(two_of_four(fours[part / 4], byte, byte), 8);
      if (part % 2 != 0) continue;
      out.least[part / 2] = _mm256_srli_epi16(two_of_four(fours[2 + part / 4], byte, byte + 1), 8);
    }
  }

  static RowBlock prepare(const Row & row) {
    const __m128i * sums = (const __m128i *)row.bsums;
    RowBlock out;
    _mm_storeu_si128((__m128i *)out.sums, _mm_hadd_epi16(_mm_loadu_si128(sums), _mm_loadu_si128(sums + 1)));
    return out;
  }

  template <int R>
  static void add(const Strip & strip, const Row * row, int64_t stride, const RowBlock * prepared, int64_t blocks,
                  __m256 * sums) {
    __m256i whole[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      whole[r] = _mm256_setzero_si256();
      for (int two = 0; two < kParts / 2; ++two) {
        const __m256i of_row = four_bytes(prepared[r * blocks].sums + 2 * two);
        whole[r] = _mm256_add_epi32(whole[r], _mm256_madd_epi16(strip.least[two], of_row));
      }
      const __m256 scale = _mm256_mul_ps(strip.least_scale, _mm256_set1_ps(row[r * stride].d));
      sums[r] = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(whole[r]), scale, sums[r]);
      whole[r] = _mm256_setzero_si256();
    }
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const int8_t * numbers = row[r * stride].qs + 32 * part;
        whole[r] = scaled_products<8, kFit>(strip.bytes + 8 * part, numbers, strip.scales[part], whole[r]);
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m256 scale = _mm256_mul_ps(strip.scale, _mm256_set1_ps(row[r * stride].d));
      sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole[r]), scale, sums[r]);
    }
  }
};

template <class Kind>
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

  // Of block `b`, `there` columns from `column` on; what a strip has more repeats the last of them.
  void arrange(int64_t column, int64_t there, int64_t b, Strip & strip) const {
    const Column * columns[kColumns];
    for (int64_t c = 0; c < kColumns; ++c) {
      columns[c] = matrix + (column + std::min(c, there - 1)) * matrix_stride + b;
      // The next strip. Eight streams are more than the processor follows by itself.
      const char * next = (const char *)(columns[c] + kColumns * matrix_stride);
      for (size_t line = 0; line < sizeof(Column); line += 64) _mm_prefetch(next + line, _MM_HINT_T0);
    }
    Kind::arrange(columns, strip);
  }

  // `R` rows from `row` on, times the strip that begins at `column`. Its blocks are arranged already, or one after the
  // other in `strip`. Returns `R`.
  template <int R, bool kArranged>
  int tile(Strip * strip, const RowBlock * prepared, int64_t row, int64_t column, int64_t there) const {
    __m256 sums[R];
    for (__m256 & sum : sums) sum = _mm256_setzero_ps();
    for (int64_t b = 0; b < blocks; ++b) {
      if (!kArranged) arrange(column, there, b, *strip);
      const Strip & block = kArranged ? strip[b] : *strip;
      Kind::template add<R>(block, rows + row * rows_stride + b, rows_stride, prepared + b, blocks, sums);
    }
    for (int r = 0; r < R; ++r) {
      alignas(32) float lanes[kColumns];
      _mm256_store_ps(lanes, sums[r]);
      memcpy(out + (row + r) * out_stride + column, lanes, there * sizeof(float));
    }
    return R;
  }

  template <bool kArranged>
  void tiles(Strip * strip, const RowBlock * prepared, int64_t first, int64_t last, int64_t column,
             int64_t there) const {
    for (int64_t row = first; row < last;) {
      const RowBlock * of_row = prepared + (row - first) * blocks;
      switch (std::min<int64_t>(last - row, Kind::kTileRows)) {
        case 1: row += tile<1, kArranged>(strip, of_row, row, column, there); break;
        case 2: row += tile<2, kArranged>(strip, of_row, row, column, there); break;
        case 3: row += tile<3, kArranged>(strip, of_row, row, column, there); break;
        default: row += tile<4, kArranged>(strip, of_row, row, column, there); break;
      }
    }
  }

  // Columns from `begin` to `end`, in strips, which need not be full.
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
        if (last - first <= Kind::kTileRows) {
          tiles<false>(strip.data(), prepared.data(), first, last, column, there);
        } else {
          for (int64_t b = 0; b < blocks; ++b) arrange(column, there, b, strip[b]);
          tiles<true>(strip.data(), prepared.data(), first, last, column, there);
        }
      }
    }
  }
};

// `m` columns, `n` rows, `k` blocks: this thread's part of the columns.
template <class Kind>
bool multiply(const ggml_compute_params * params, int64_t m, int64_t n, int64_t k, const void * A, int64_t lda,
              const void * B, int64_t ldb, void * C, int64_t ldc) {
  const int64_t strips = (m + kColumns - 1) / kColumns;
  const int64_t begin = strips * params->ith / params->nth * kColumns;
  const int64_t end = std::min(m, strips * (params->ith + 1) / params->nth * kColumns);
  if (n <= 0 || begin >= end) return true;
  const auto * matrix = (const typename Kind::Column *)A;
  const Product<Kind> product{matrix, lda, (const typename Kind::Row *)B, ldb, (float *)C, ldc, k};
  product.compute(n, begin, end);
  return true;
}

}  // namespace chasqui

// As llamafile_sgemm, for a matrix of one of these formats; false: it is another one.
static bool chasqui_gemm(const ggml_compute_params * params, int64_t m, int64_t n, int64_t k, const void * A,
                         int64_t lda, const void * B, int64_t ldb, void * C, int64_t ldc, int matrix, int rows) {
  using namespace chasqui;
  if (rows != GGML_TYPE_Q8_K) return false;
  switch (matrix) {
    // One row is read faster in one piece, column by column, than in eight streams of memory.
    case GGML_TYPE_Q4_K: return n > 1 && multiply<MinRows<block_q4_K>>(params, m, n, k, A, lda, B, ldb, C, ldc);
    case GGML_TYPE_Q5_K: return multiply<MinRows<block_q5_K>>(params, m, n, k, A, lda, B, ldb, C, ldc);
    // One row is not worth the arranging.
    case GGML_TYPE_Q6_K: return n > 1 && multiply<Q6Rows>(params, m, n, k, A, lda, B, ldb, C, ldc);
    default: return false;
  }
}
