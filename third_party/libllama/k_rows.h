// The K formats of byte_rows.h, which includes this: how sixteen columns of a block are arranged, and added to the sums of
// rows of Q8_K. A lane holds the sum of one column; sums of 16 or 32 products are multiplied by the scales that the format has
// for them, as integers.
#pragma once

namespace chasqui {

// Q6_K times Q8_K: blocks of 256 numbers of six bits, with a scale of eight bits for sixteen of them and one for all.
struct Q6Rows {
  using Column = block_q6_K;
  using Row = block_q8_K;
  static constexpr int kParts = QK_K / 16;
  static constexpr int kTileRows = 8;

  struct alignas(64) Strip {
    __m512i bytes[QK_K / 4];     // 0 to 63, which is plus 32
    __m512i scales[kParts];      // of each sixteen numbers
    __m512i pairs[kParts / 2];   // the same, two to a lane
    __m512 scale;
  };
  struct RowBlock {};  // Q8_K has the sums already

  // The numbers of a block in their order.
  static void unpack(const Column & column, uint8_t * out) {
    const __m512i low = _mm512_set1_epi8(0x0F);
    const __m512i high = _mm512_set1_epi8(0x30);
    for (int half = 0; half < 2; ++half) {
      const __m512i ql = _mm512_loadu_si512(column.ql + 64 * half);
      const __m512i qh = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(column.qh + 32 * half)));
      // Two upper bits: of the first 32 numbers bits 0 and 1, of the next 2 and 3, and so on.
      const __m512i shift_low = _mm512_inserti64x4(_mm512_slli_epi16(qh, 4),
                                                   _mm512_castsi512_si256(_mm512_slli_epi16(qh, 2)), 1);
      const __m512i shift_high = _mm512_inserti64x4(qh, _mm512_castsi512_si256(_mm512_srli_epi16(qh, 2)), 1);
      const __m512i first = _mm512_or_si512(_mm512_and_si512(ql, low), _mm512_and_si512(shift_low, high));
      const __m512i second = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(ql, 4), low),
                                             _mm512_and_si512(shift_high, high));
      _mm512_storeu_si512(out + 128 * half, first);
      _mm512_storeu_si512(out + 128 * half + 64, second);
    }
  }

  static void arrange(const Column * const * columns, Strip & out) {
    alignas(64) uint8_t numbers[kColumns][QK_K];
    alignas(64) ggml_half scales[kColumns];
    const uint8_t * at[kColumns];
    for (int c = 0; c < kColumns; ++c) {
      unpack(*columns[c], numbers[c]);
      scales[c] = columns[c]->d;
    }
    for (int part = 0; part < kParts; ++part) {
      for (int c = 0; c < kColumns; ++c) at[c] = numbers[c] + 16 * part;
      spread(at, out.bytes + 4 * part);
    }
    // Four vectors with four scales of every column, which become sixteen with one each.
    for (int c = 0; c < kColumns; ++c) at[c] = (const uint8_t *)columns[c]->scales;
    __m512i fours[4];
    spread(at, fours);
    for (int part = 0; part < kParts; ++part) {
      const __m512i top = _mm512_sllv_epi32(fours[part / 4], _mm512_set1_epi32(24 - 8 * (part % 4)));
      out.scales[part] = _mm512_srai_epi32(top, 24);
    }
    for (int pair = 0; pair < kParts / 2; ++pair) {
      const __m512i even = _mm512_and_si512(out.scales[2 * pair], _mm512_set1_epi32(0xFFFF));
      out.pairs[pair] = _mm512_or_si512(even, _mm512_slli_epi32(out.scales[2 * pair + 1], 16));
    }
    out.scale = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)scales));
  }

  static RowBlock prepare(const Row &) { return {}; }

  template <int R>
  static void add(const Strip & strip, const Row * row, int64_t stride, const RowBlock *, int64_t, __m512 * sums) {
    __m512i whole[R];
    // What the 32 in each number adds is taken off first, 32 times the row's sums.
    for (__m512i & each : whole) each = _mm512_setzero_si512();
    for (int pair = 0; pair < kParts / 2; ++pair) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        int32_t two;
        memcpy(&two, row[r * stride].bsums + 2 * pair, sizeof two);
        whole[r] = _mm512_dpwssd_epi32(whole[r], strip.pairs[pair], _mm512_set1_epi32(two));
      }
    }
    for (__m512i & each : whole) each = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(each, 5));
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const int8_t * numbers = row[r * stride].qs + 16 * part;
        __m512i of_part = _mm512_setzero_si512();
        for (int k = 0; k < 4; ++k) {
          of_part = _mm512_dpbusd_epi32(of_part, strip.bytes[4 * part + k], four_bytes(numbers + 4 * k));
        }
        whole[r] = _mm512_add_epi32(whole[r], _mm512_mullo_epi32(of_part, strip.scales[part]));
      }
    }
    for (int r = 0; r < R; ++r) {
      const __m512 scale = _mm512_mul_ps(strip.scale, _mm512_set1_ps(row[r * stride].d));
      sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole[r]), scale, sums[r]);
    }
  }
};

// The upper bit of Q5_K: of the numbers 32 * part and on, by sixteens, as `spread` has them.
inline __m512i fifth_bits(const block_q4_K *, __m512i, int) { return _mm512_setzero_si512(); }
inline __m512i fifth_bits(const block_q5_K *, __m512i bits, int part) {
  const __m512i moved = part <= 4 ? _mm512_slli_epi16(bits, 4 - part) : _mm512_srli_epi16(bits, part - 4);
  return _mm512_and_si512(moved, _mm512_set1_epi8(0x10));
}
inline const uint8_t * fifth_bytes(const block_q4_K &) { return nullptr; }
inline const uint8_t * fifth_bytes(const block_q5_K & block) { return block.qh; }

// Q4_K and Q5_K times Q8_K: blocks of 256 numbers without a sign, and for 32 of them a scale and a least value of six bits.
template <class Block>
struct MinRows {
  using Column = Block;
  using Row = block_q8_K;
  static constexpr int kParts = QK_K / 32;
  static constexpr int kTileRows = 8;

  struct alignas(64) Strip {
    __m512i bytes[QK_K / 4];
    __m512i scales[kParts];
    __m512i least[kParts];  // twice in a lane
    __m512 scale, least_scale;
  };
  struct RowBlock {};

  // Eight scales and eight least values of a block, a byte each.
  static void unpack(const uint8_t * packed, uint32_t out[4]) {
    uint32_t words[3];
    memcpy(words, packed, sizeof words);
    out[0] = words[0] & 0x3F3F3F3F;
    out[1] = (words[2] & 0x0F0F0F0F) | ((words[0] >> 6 & 0x03030303) << 4);
    out[2] = words[1] & 0x3F3F3F3F;
    out[3] = (words[2] >> 4 & 0x0F0F0F0F) | ((words[1] >> 6 & 0x03030303) << 4);
  }

  static void arrange(const Column * const * columns, Strip & out) {
    const uint8_t * at[kColumns];
    __m512i fifth[2][4] = {};
    for (int half = 0; half < 2 && fifth_bytes(*columns[0]) != nullptr; ++half) {
      for (int c = 0; c < kColumns; ++c) at[c] = fifth_bytes(*columns[c]) + 16 * half;
      spread(at, fifth[half]);
    }
    const __m512i low = _mm512_set1_epi8(0x0F);
    for (int piece = 0; piece < 8; ++piece) {  // sixteen bytes with two numbers each, which are 32 apart
      for (int c = 0; c < kColumns; ++c) at[c] = columns[c]->qs + 16 * piece;
      __m512i both[4];
      spread(at, both);
      const int part = piece / 2 * 2;
      for (int k = 0; k < 4; ++k) {
        const __m512i bits = fifth[piece % 2][k];
        const int first = 8 * part + piece % 2 * 4 + k;
        const __m512i upper = _mm512_srli_epi16(both[k], 4);
        out.bytes[first] = _mm512_or_si512(_mm512_and_si512(both[k], low), fifth_bits(columns[0], bits, part));
        out.bytes[first + 8] = _mm512_or_si512(_mm512_and_si512(upper, low), fifth_bits(columns[0], bits, part + 1));
      }
    }
    arrange_scales(columns, out);
  }

  static void arrange_scales(const Column * const * columns, Strip & out) {
    uint32_t scales[kColumns][4];
    alignas(32) ggml_half whole[2][kColumns];
    const uint8_t * at[kColumns];
    for (int c = 0; c < kColumns; ++c) {
      unpack(columns[c]->scales, scales[c]);
      at[c] = (const uint8_t *)scales[c];
      whole[0][c] = columns[c]->d;
      whole[1][c] = columns[c]->dmin;
    }
    __m512i fours[4];
    spread(at, fours);
    const __m512i byte = _mm512_set1_epi32(0xFF);
    for (int part = 0; part < kParts; ++part) {
      const __m512i shift = _mm512_set1_epi32(8 * (part % 4));
      out.scales[part] = _mm512_and_si512(_mm512_srlv_epi32(fours[part / 4], shift), byte);
      const __m512i least = _mm512_and_si512(_mm512_srlv_epi32(fours[2 + part / 4], shift), byte);
      out.least[part] = _mm512_or_si512(least, _mm512_slli_epi32(least, 16));
    }
    out.scale = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)whole[0]));
    out.least_scale = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)whole[1]));
  }

  static RowBlock prepare(const Row &) { return {}; }

  template <int R>
  static void add(const Strip & strip, const Row * row, int64_t stride, const RowBlock *, int64_t, __m512 * sums) {
    __m512i whole[R];
    for (__m512i & each : whole) each = _mm512_setzero_si512();
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        int32_t two;
        memcpy(&two, row[r * stride].bsums + 2 * part, sizeof two);
        whole[r] = _mm512_dpwssd_epi32(whole[r], strip.least[part], _mm512_set1_epi32(two));
      }
    }
    for (int r = 0; r < R; ++r) {
      const __m512 scale = _mm512_mul_ps(strip.least_scale, _mm512_set1_ps(row[r * stride].d));
      sums[r] = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(whole[r]), scale, sums[r]);
      whole[r] = _mm512_setzero_si512();
    }
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const int8_t * numbers = row[r * stride].qs + 32 * part;
        __m512i of_part = _mm512_setzero_si512();
        for (int k = 0; k < 8; ++k) {
          of_part = _mm512_dpbusd_epi32(of_part, strip.bytes[8 * part + k], four_bytes(numbers + 4 * k));
        }
        whole[r] = _mm512_add_epi32(whole[r], _mm512_mullo_epi32(of_part, strip.scales[part]));
      }
    }
    for (int r = 0; r < R; ++r) {
      const __m512 scale = _mm512_mul_ps(strip.scale, _mm512_set1_ps(row[r * stride].d));
      sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole[r]), scale, sums[r]);
    }
  }
};

}  // namespace chasqui
