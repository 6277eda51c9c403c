// A few rows times a matrix, for byte_rows.h, which includes this: a column at a time, from the file as it is. Arranging columns
// for the strips costs as much as some rows do; here a unit of a column is unpacked into registers and multiplied with each
// row. Floats of units are added one after the other, in sixteen lanes that are added up at the end of the column. What is
// said of a row does not depend on how many there are.
#pragma once

namespace chasqui {

inline float to_float(ggml_half half) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half))); }

inline __m512 add_float(__m512 sum, __m512i whole, __m512 scale) {
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), scale, sum);
}

// Q8_0: two blocks at a time. The instruction takes one side without a sign, which is moved to the other side.
struct Q8Column {
  using Column = block_q8_0;
  using Row = block_q8_0;
  static constexpr int kMostRows = 4;
  struct RowUnit {
    __m512i numbers;
    __m512 scales;
  };

  __m512i numbers;
  __mmask64 negative;
  __m512 scales;

  static int64_t units(int64_t blocks) { return (blocks + 1) / 2; }

  static RowUnit read(const block_q8_0 * blocks, int64_t unit, int64_t count) {
    const block_q8_0 & first = blocks[2 * unit];
    __m512i bytes = _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)first.qs));
    __m512 scales = _mm512_set1_ps(to_float(first.d));
    if (2 * unit + 1 < count) {
      const block_q8_0 & second = blocks[2 * unit + 1];
      bytes = _mm512_inserti64x4(bytes, _mm256_loadu_si256((const __m256i *)second.qs), 1);
      scales = _mm512_mask_broadcastss_ps(scales, 0xFF00, _mm_set_ss(to_float(second.d)));
    }
    return {bytes, scales};
  }

  Q8Column(const Column * blocks, int64_t unit, int64_t count) {
    const RowUnit both = read(blocks, unit, count);
    numbers = _mm512_abs_epi8(both.numbers);
    negative = _mm512_movepi8_mask(both.numbers);
    scales = both.scales;
  }

  static void arrange(const Row * row, int64_t unit, int64_t count, RowUnit & out) { out = read(row, unit, count); }

  __m512 add(__m512 sum, const RowUnit & row) const {
    const __m512i turned = _mm512_mask_sub_epi8(row.numbers, negative, _mm512_setzero_si512(), row.numbers);
    const __m512i whole = _mm512_dpbusd_epi32(_mm512_setzero_si512(), numbers, turned);
    return add_float(sum, whole, _mm512_mul_ps(scales, row.scales));
  }
};

// The K formats. Products are added up by pairs to 16 bits (they fit: a number of the matrix is below 64), and by fours with
// the scale of their part.
struct KColumn {
  using Row = block_q8_K;
  using RowUnit = block_q8_K;
  static constexpr int kMostRows = 7;

  __m512i numbers[4];
  __m512i scales[4];  // 16 bits, as the numbers by pairs
  float scale;

  static int64_t units(int64_t blocks) { return blocks; }

  __m512i product(const block_q8_K & row) const {
    __m512i sum = _mm512_setzero_si512();
    for (int i = 0; i < 4; ++i) {
      const __m512i pairs = _mm512_maddubs_epi16(numbers[i], _mm512_loadu_si512(row.qs + 64 * i));
      sum = _mm512_dpwssd_epi32(sum, pairs, scales[i]);
    }
    return sum;
  }

  // The sums of a row's sixteens, each times a number.
  static __m512i of_sums(__m256i factors, const block_q8_K & row) {
    const __m256i sums = _mm256_loadu_si256((const __m256i *)row.bsums);
    return _mm512_zextsi256_si512(_mm256_madd_epi16(factors, sums));
  }
};

struct Q6Column : KColumn {
  using Column = block_q6_K;

  __m256i part_scales;

  Q6Column(const Column * blocks, int64_t unit, int64_t) {
    const Column & block = blocks[unit];
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
    scale = to_float(block.d);
  }

  static void arrange(const Row * row, int64_t unit, int64_t, RowUnit & out) { out = row[unit]; }

  __m512 add(__m512 sum, const RowUnit & row) const {
    const __m512i too_much = _mm512_slli_epi32(of_sums(part_scales, row), 5);
    return add_float(sum, _mm512_sub_epi32(product(row), too_much), _mm512_set1_ps(scale * row.d));
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
template <class Block>
struct MinColumn : KColumn {
  using Column = Block;

  __m256i least;  // of the parts, each twice
  float least_scale;

  MinColumn(const Block * blocks, int64_t unit, int64_t) {
    const Block & block = blocks[unit];
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
    least = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(parts, parts));
    scale = to_float(block.d);
    least_scale = to_float(block.dmin);
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

  static void arrange(const Row * row, int64_t unit, int64_t, RowUnit & out) {
    constexpr int order[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    out = row[unit];
    for (int part = 0; part < 8; ++part) memcpy(out.qs + 32 * part, row[unit].qs + 32 * order[part], 32);
  }

  __m512 add(__m512 sum, const RowUnit & row) const {
    sum = add_float(sum, of_sums(least, row), _mm512_set1_ps(-least_scale * row.d));
    return add_float(sum, product(row), _mm512_set1_ps(scale * row.d));
  }
};

// Rows that are one after the other in `arranged`, times columns.
template <class Kind>
struct FewRows {
  const typename Kind::Column * matrix;
  int64_t matrix_stride;  // blocks
  int64_t blocks;
  const typename Kind::RowUnit * arranged;
  float * out;
  int64_t out_stride;

  // `count` of them, which are not more than `R`.
  template <int R>
  void compute(int64_t count, int64_t begin, int64_t end) const {
    if constexpr (R > 1) {
      if (count < R) return compute<R - 1>(count, begin, end);
    }
    const int64_t units = Kind::units(blocks);
    for (int64_t column = begin; column < end; ++column) {
      __m512 sums[R];
      for (__m512 & sum : sums) sum = _mm512_setzero_ps();
      for (int64_t unit = 0; unit < units; ++unit) {
        const Kind unpacked(matrix + column * matrix_stride, unit, blocks);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) sums[r] = unpacked.add(sums[r], arranged[r * units + unit]);
      }
      for (int r = 0; r < R; ++r) out[r * out_stride + column] = _mm512_reduce_add_ps(sums[r]);
    }
  }
};

}  // namespace chasqui
