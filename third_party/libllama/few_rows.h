// A few rows times a matrix, for byte_rows.h, which includes this: some columns at a time, from the file as it is. Arranging
// sixteen columns for the strips costs as much as some rows do; here a block of a column is unpacked into registers and
// multiplied with each row, the lanes of its integers are added up, and floats go on as they do in strips: in a lane for each
// column, with the same operations in the same order. So the bits are the same for few rows and for many.
#pragma once

namespace chasqui {

inline float to_float(ggml_half half) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half))); }

// Of four vectors, the sums of each quarter: in each quarter of the result, one of each vector.
inline __m512i quarter_sums(const __m512i vectors[4]) {
  const auto pair = [](__m512i one, __m512i other) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(one, other), _mm512_unpackhi_epi32(one, other));
  };
  const __m512i first = pair(vectors[0], vectors[1]);
  const __m512i last = pair(vectors[2], vectors[3]);
  return _mm512_add_epi32(_mm512_unpacklo_epi64(first, last), _mm512_unpackhi_epi64(first, last));
}

// Q8_0, eight columns: a vector has a block of two of them.
struct Q8Few {
  using Column = block_q8_0;
  using Row = block_q8_0;
  using Sums = __m256;
  static constexpr int kMostRows = 4;
  static constexpr int kWidth = 8;

  struct RowBlock {
    int8_t numbers[QK8_0];
    int32_t offset;  // minus 128 times their sum
    float scale;
  };
  struct Block {
    __m512i numbers[4];  // plus 128; of columns 0 and 4, 1 and 5, …
    __m256 scales;
  };

  static void unpack(const Column * const * columns, Block & out) {
    alignas(16) ggml_half scales[kWidth];
    for (int i = 0; i < 4; ++i) {
      const __m256i lower = _mm256_loadu_si256((const __m256i *)columns[i]->qs);
      const __m256i upper = _mm256_loadu_si256((const __m256i *)columns[i + 4]->qs);
      const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(lower), upper, 1);
      out.numbers[i] = _mm512_xor_si512(both, _mm512_set1_epi8((char)0x80));
    }
    for (int c = 0; c < kWidth; ++c) scales[c] = columns[c]->d;
    out.scales = _mm256_cvtph_ps(_mm_load_si128((const __m128i *)scales));
  }

  static void arrange(const Row & row, RowBlock & out) {
    const Q8Rows::RowBlock prepared = Q8Rows::prepare(row);
    memcpy(out.numbers, row.qs, sizeof out.numbers);
    out.offset = prepared.offset;
    out.scale = prepared.scale;
  }

  template <int R>
  static void add(const Column * const * columns, const RowBlock * rows, int64_t stride, Sums * sums) {
    Block block;
    unpack(columns, block);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const RowBlock & row = rows[r * stride];
      const __m512i numbers = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)row.numbers));
      __m512i products[4];
      for (int i = 0; i < 4; ++i) products[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), block.numbers[i], numbers);
      const __m512i quarters = quarter_sums(products);
      const __m512i halves = _mm512_add_epi32(quarters, _mm512_shuffle_i64x2(quarters, quarters, 0xB1));
      const __m256i each = _mm512_castsi512_si256(_mm512_shuffle_i64x2(halves, halves, 0x08));
      const __m256i whole = _mm256_add_epi32(each, _mm256_set1_epi32(row.offset));
      const __m256 scales = _mm256_mul_ps(block.scales, _mm256_set1_ps(row.scale));
      sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), scales, sums[r]);
    }
  }

  static void store(float * out, Sums sums, int count) { _mm256_mask_storeu_ps(out, (__mmask8)((1u << count) - 1), sums); }
};

// The K formats, four columns. Products are added up by pairs to 16 bits (they fit: a number of the matrix is below 64), and by
// fours with the scale of their part.
template <class Format>
struct KFew {
  using Column = typename Format::Block;
  using Row = block_q8_K;
  using RowBlock = block_q8_K;
  using Sums = __m128;
  static constexpr int kMostRows = 7;
  static constexpr int kWidth = 4;

  static void arrange(const Row & row, RowBlock & out) { Format::arrange(row, out); }

  template <int R>
  static void add(const Column * const * columns, const RowBlock * rows, int64_t stride, Sums * sums) {
    typename Format::Whole whole;
    __m512i products[R][kWidth];
    for (int c = 0; c < kWidth; ++c) {
      const Format column(*columns[c], whole, c);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) products[r][c] = column.times(rows[r * stride]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512i quarters = quarter_sums(products[r]);
      const __m256i halves = _mm256_add_epi32(_mm512_castsi512_si256(quarters), _mm512_extracti64x4_epi64(quarters, 1));
      const __m128i each = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
      sums[r] = whole.add(sums[r], each, rows[r * stride]);
    }
  }

  static void store(float * out, Sums sums, int count) { _mm_mask_storeu_ps(out, (__mmask8)((1u << count) - 1), sums); }
};

// A block of a column: numbers, and as 16 bits the scales that their pairs have.
struct KColumn {
  __m512i numbers[4];
  __m512i scales[4];

  __m512i product(const block_q8_K & row) const {
    __m512i sum = _mm512_setzero_si512();
    for (int i = 0; i < 4; ++i) {
      const __m512i pairs = _mm512_maddubs_epi16(numbers[i], _mm512_loadu_si512(row.qs + 64 * i));
      sum = _mm512_dpwssd_epi32(sum, pairs, scales[i]);
    }
    return sum;
  }
};

inline __m128 add_scaled(__m128 sums, __m128i whole, __m128 scales, float scale) {
  return _mm_fmadd_ps(_mm_cvtepi32_ps(whole), _mm_mul_ps(scales, _mm_set1_ps(scale)), sums);
}

struct Q6Column : KColumn {
  using Block = block_q6_K;
  struct Whole {  // of the four columns
    alignas(16) float scales[4];

    __m128 add(__m128 sums, __m128i whole, const block_q8_K & row) const {
      return add_scaled(sums, whole, _mm_load_ps(scales), row.d);
    }
  };

  __m256i part_scales;

  Q6Column(const Block & block, Whole & whole, int place) {
    alignas(64) uint8_t unpacked[QK_K];  // 0 to 63, which is plus 32
    Q6Rows::unpack(block, unpacked);
    part_scales = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)block.scales));
    const __m512i all = _mm512_castsi256_si512(part_scales);
    for (int i = 0; i < 4; ++i) {
      numbers[i] = _mm512_load_si512(unpacked + 64 * i);
      // Each of four scales eight times.
      const __m512i which = _mm512_cvtepi8_epi16(_mm256_set_epi64x(
          0x0101010101010101 * (4 * i + 3), 0x0101010101010101 * (4 * i + 2), 0x0101010101010101 * (4 * i + 1),
          0x0101010101010101 * (4 * i)));
      scales[i] = _mm512_permutexvar_epi16(which, all);
    }
    whole.scales[place] = to_float(block.d);
  }

  static void arrange(const block_q8_K & row, block_q8_K & out) { out = row; }

  __m512i times(const block_q8_K & row) const {
    const __m256i sums = _mm256_madd_epi16(part_scales, _mm256_loadu_si256((const __m256i *)row.bsums));
    return _mm512_sub_epi32(product(row), _mm512_zextsi256_si512(_mm256_slli_epi32(sums, 5)));
  }
};

// Of 64 numbers of a MinColumn that begin with the part `part`, the upper bits.
inline __m512i upper_bits(const block_q4_K &, int) { return _mm512_setzero_si512(); }
inline __m512i upper_bits(const block_q5_K & block, int part) {
  const __m512i bits = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)block.qh));
  const __m512i which = _mm512_inserti64x4(_mm512_set1_epi8((char)(1 << part)), _mm256_set1_epi8((char)(4 << part)), 1);
  return _mm512_maskz_set1_epi8(_mm512_test_epi8_mask(bits, which), 0x10);
}

// Q4_K and Q5_K. A byte has two numbers that are a part apart: a vector has the parts 0 and 2 of a half, the next one 1 and 3.
template <class B>
struct MinColumn : KColumn {
  using Block = B;
  struct Whole {
    alignas(64) __m128i least[4];  // of each column eight values of 16 bits
    alignas(16) float scales[4];
    alignas(16) float least_scales[4];

    __m128 add(__m128 sums, __m128i whole, const block_q8_K & row) const {
      const __m512i of_parts = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)row.bsums));
      const __m512i pairs = _mm512_madd_epi16(_mm512_load_si512(least), of_parts);
      const __m512i fours = _mm512_add_epi32(pairs, _mm512_shuffle_epi32(pairs, (_MM_PERM_ENUM)0xB1));
      const __m512i all = _mm512_add_epi32(fours, _mm512_shuffle_epi32(fours, (_MM_PERM_ENUM)0x4E));
      const __m128i each = _mm512_castsi512_si128(
          _mm512_permutexvar_epi32(_mm512_castsi128_si512(_mm_set_epi32(12, 8, 4, 0)), all));
      const __m128 too_much = _mm_mul_ps(_mm_load_ps(least_scales), _mm_set1_ps(row.d));
      return add_scaled(_mm_fnmadd_ps(_mm_cvtepi32_ps(each), too_much, sums), whole, _mm_load_ps(scales), row.d);
    }
  };

  MinColumn(const Block & block, Whole & whole, int place) {
    const __m128i parts = unpack_scales(block);
    const __m512i all = _mm512_broadcast_i32x4(parts);
    const __m512i low = _mm512_set1_epi8(0x0F);
    for (int half = 0; half < 2; ++half) {
      const __m512i both = _mm512_loadu_si512(block.qs + 64 * half);
      const __m512i sides[2] = {_mm512_and_si512(both, low), _mm512_and_si512(_mm512_srli_epi16(both, 4), low)};
      for (int side = 0; side < 2; ++side) {
        const int part = 4 * half + side;
        numbers[2 * half + side] = _mm512_or_si512(sides[side], upper_bits(block, part));
        scales[2 * half + side] = _mm512_shuffle_epi8(all, which_parts(part));
      }
    }
    whole.least[place] = _mm_unpackhi_epi8(parts, _mm_setzero_si128());
    whole.scales[place] = to_float(block.d);
    whole.least_scales[place] = to_float(block.dmin);
  }

  // MinRows::unpack without leaving the registers.
  static __m128i unpack_scales(const Block & block) {
    const __m128i words = _mm_loadu_si128((const __m128i *)block.scales);  // twelve bytes, and more of the block
    const __m128i lower = _mm_srlv_epi32(_mm_shuffle_epi32(words, _MM_SHUFFLE(2, 1, 2, 0)), _mm_set_epi32(4, 0, 0, 0));
    const __m128i upper = _mm_srli_epi32(_mm_shuffle_epi32(words, _MM_SHUFFLE(1, 1, 0, 0)), 2);
    const __m128i low = _mm_set_epi32(0x0F0F0F0F, 0x3F3F3F3F, 0x0F0F0F0F, 0x3F3F3F3F);
    const __m128i high = _mm_set_epi32(0x30303030, 0, 0x30303030, 0);
    return _mm_or_si128(_mm_and_si128(lower, low), _mm_and_si128(upper, high));
  }

  // Sixteen times the byte of `part` as 16 bits, and sixteen times that of the one after the next.
  static __m512i which_parts(int part) {
    const __m512i first = _mm512_set1_epi16((short)(0x8000 | part));
    return _mm512_mask_add_epi16(first, 0xFFFF0000, first, _mm512_set1_epi16(2));
  }

  // In the order of the vectors, and the sums of whole parts.
  static void arrange(const block_q8_K & row, block_q8_K & out) {
    constexpr int order[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    out.d = row.d;
    for (int part = 0; part < 8; ++part) {
      memcpy(out.qs + 32 * part, row.qs + 32 * order[part], 32);
      out.bsums[part] = (int16_t)(row.bsums[2 * part] + row.bsums[2 * part + 1]);
    }
  }

  __m512i times(const block_q8_K & row) const { return product(row); }
};

// Rows that are one after the other in `arranged`, times columns.
template <class Few>
struct FewRows {
  const typename Few::Column * matrix;
  int64_t matrix_stride;  // blocks
  int64_t blocks;
  const typename Few::RowBlock * arranged;
  float * out;
  int64_t out_stride;

  // `count` of them, which are not more than `R`.
  template <int R>
  void compute(int64_t count, int64_t begin, int64_t end) const {
    if constexpr (R > 1) {
      if (count < R) return compute<R - 1>(count, begin, end);
    }
    for (int64_t column = begin; column < end; column += Few::kWidth) {
      const int there = (int)std::min<int64_t>(Few::kWidth, end - column);
      typename Few::Sums sums[R] = {};
      for (int64_t b = 0; b < blocks; ++b) {
        const typename Few::Column * columns[Few::kWidth];
        for (int c = 0; c < Few::kWidth; ++c) {
          columns[c] = matrix + (column + std::min(c, there - 1)) * matrix_stride + b;
          // The next columns.
          const char * next = (const char *)(columns[c] + Few::kWidth * matrix_stride);
          for (size_t line = 0; line < sizeof(typename Few::Column); line += 64) _mm_prefetch(next + line, _MM_HINT_T0);
        }
        Few::template add<R>(columns, arranged + b, blocks, sums);
      }
      for (int r = 0; r < R; ++r) Few::store(out + r * out_stride + column, sums[r], there);
    }
  }
};

}  // namespace chasqui
